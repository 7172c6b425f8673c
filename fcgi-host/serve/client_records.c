/*
 * What a connection's records say: a request's parts go to it, management
 * records are answered here.
 */
#include "serve/client_private.h"

#include "serve/request.h"

#include <fastcgi.h>

enum {
	MAX_REQUESTS_SAID = 65535,      /* to GET_VALUES: we queue what we cannot run */
};

/* Where the content of the record being read goes. */
enum sink { SINK_SKIP, SINK_BEGIN, SINK_PARAMS, SINK_STDIN, SINK_VALUES };

static int begin_request(struct client *client)
{
	struct fcgi_begin begin;
	uint16_t id = client->decoder.id;

	if (client->decoder.content_len != FCGI_BODY_BYTES)
		return -1;
	fcgi_get_begin(client->fixed.bytes, &begin);
	if (client->request != NULL && client->request->fcgi_id == id)
		return -1;
	if (client->request != NULL) {
		client_put_end(client, id, 0, FCGI_CANT_MPX_CONN);
		return 0;
	}
	if (client->state != CLIENT_OPEN)
		return 0;
	if (begin.role != FCGI_RESPONDER) {
		client_put_end(client, id, 0, FCGI_UNKNOWN_ROLE);
		if ((begin.flags & FCGI_KEEP_CONN) == 0)
			client_close_after_last_words(client);
		return 0;
	}
	client_stop_waiting(client);
	client->request = request_new(client, id, (begin.flags & FCGI_KEEP_CONN) != 0);
	return client->request == NULL ? -1 : 0;
}

static int answer_values(struct client *client)
{
	struct slice asked = { (const char *)bytes_data(&client->values), client->values.len };
	int status = fcgi_put_values(&client->out, asked, MAX_REQUESTS_SAID, MAX_REQUESTS_SAID);

	bytes_fini(&client->values);
	client_flush_soon(client);
	return status;
}

/* Does this record belong to the request that is being read? */
static bool is_ours(const struct client *client)
{
	return client->request != NULL && client->request->fcgi_id == client->decoder.id;
}

static enum sink sink_of(const struct client *client)
{
	switch (client->decoder.type) {
	case FCGI_BEGIN_REQUEST: return SINK_BEGIN;
	case FCGI_PARAMS: return is_ours(client) ? SINK_PARAMS : SINK_SKIP;
	case FCGI_STDIN: return is_ours(client) ? SINK_STDIN : SINK_SKIP;
	case FCGI_GET_VALUES: return client->decoder.id == 0 ? SINK_VALUES : SINK_SKIP;
	default: return SINK_SKIP;
	}
}

static bool is_management(uint8_t type)
{
	return type >= FCGI_GET_VALUES || type == 0;
}

static int on_record_start(struct client *client)
{
	client->fixed.len = 0;
	client->sink = (uint8_t)sink_of(client);
	return client->decoder.id == 0 && !is_management(client->decoder.type) ? -1 : 0;
}

static int on_record_content(struct client *client, struct slice content)
{
	/* An answer to an earlier record may have ended the request. */
	if ((client->sink == SINK_PARAMS || client->sink == SINK_STDIN) && !is_ours(client))
		return 0;
	switch ((enum sink)client->sink) {
	case SINK_SKIP:
		break;
	case SINK_BEGIN:
		fcgi_fixed_put(&client->fixed, content);
		break;
	case SINK_PARAMS:
		request_params(client->request, content);
		break;
	case SINK_STDIN:
		request_stdin(client->request, content);
		break;
	case SINK_VALUES:
		return bytes_append(&client->values, content.ptr, content.len);
	}
	return 0;
}

static int on_record_end(struct client *client)
{
	const struct fcgi_decoder *decoder = &client->decoder;
	uint8_t record[16];

	if (client->sink == SINK_BEGIN)
		return begin_request(client);
	if (client->sink == SINK_VALUES)
		return answer_values(client);
	if (decoder->id == 0) {
		fcgi_put_unknown_type(record, decoder->type);
		client_put(client, record, sizeof(record));
		return 0;
	}
	if (!is_ours(client))
		return 0;
	if (decoder->type == FCGI_ABORT_REQUEST)
		request_abort(client->request);
	else if (client->sink == SINK_PARAMS && decoder->content_len == 0)
		request_params_end(client->request);
	else if (client->sink == SINK_STDIN && decoder->content_len == 0)
		request_stdin_end(client->request);
	return 0;
}

int client_take(struct client *client, struct slice input)
{
	struct slice content;

	for (;;) {
		int status = 0;

		switch (fcgi_decode(&client->decoder, &input, &content)) {
		case FCGI_MORE: return 0;
		case FCGI_BAD: return -1;
		case FCGI_START: status = on_record_start(client); break;
		case FCGI_CONTENT: status = on_record_content(client, content); break;
		case FCGI_END: status = on_record_end(client); break;
		}
		if (status < 0)
			return -1;
	}
}
