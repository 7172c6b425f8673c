/* Any block of pairs; what can be read can be written and read again.  The
 * same bytes as a GET_VALUES body get a small answer or none. */
#include "wire/fcgi.h"
#include "wire/fcgi_params.h"
#include "wire/vars.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(struct slice name, struct slice value)
{
	struct bytes out;
	struct slice block, name_again, value_again;

	bytes_init(&out, name.len + value.len + 8);
	if (fcgi_put_pair(&out, name, value) != 0)
		abort();
	block = (struct slice){ (const char *)bytes_data(&out), out.len };
	if (fcgi_next_pair(&block, &name_again, &value_again) != FCGI_PAIR_OK || block.len != 0)
		abort();
	if (name_again.len != name.len || value_again.len != value.len
	    || memcmp(name_again.ptr, name.ptr, name.len) != 0 || memcmp(value_again.ptr, value.ptr, value.len) != 0)
		abort();
	bytes_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice block = { (const char *)data, size }, name, value;
	struct vars *vars = vars_new(4096);
	struct bytes out;

	while (fcgi_next_pair(&block, &name, &value) == FCGI_PAIR_OK) {
		check_again(name, value);
		vars_set(vars, name, value);
		if (vars_bytes(vars) > 4096)
			abort();
	}
	bytes_init(&out, 4096 * 4);
	if (vars_to_environ(vars, &out) != 0 || out.len != vars_bytes(vars) || vars_to_params(vars, &out) != 0)
		abort();
	bytes_clear(&out);
	fcgi_put_values(&out, (struct slice){ (const char *)data, size }, 1, 1);
	if (out.len > 200)
		abort();
	bytes_fini(&out);
	vars_free(&vars);
	return 0;
}
