/*
 * config_reference.c - prints the reference of all keys of the configuration
 * file, from the one table, for the test that holds fcgi-host.yaml.5 against it.
 */
#include "config/config.h"

#include <stdio.h>

int main(void)
{
	config_reference(stdout);
	return fflush(stdout) == 0 ? 0 : 1;
}
