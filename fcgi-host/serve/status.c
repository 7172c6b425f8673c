#include "serve/status.h"

#include "serve/host.h"

void status_json(struct host *host, struct bytes *out)
{
	(void)host;
	bytes_append_text(out, "{}\n");
}
