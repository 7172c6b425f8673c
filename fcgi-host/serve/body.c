#include "serve/body.h"

void body_init(struct body *body)
{
	*body = (struct body){ .is_complete = false };
	spool_init(&body->spool);
}

void body_fini(struct body *body)
{
	spool_fini(&body->spool);
}

size_t body_room(const struct body *body)
{
	return body->may_spool ? SIZE_MAX : bytes_room(&body->spool.memory);
}

void body_allow_spool(struct body *body)
{
	body->may_spool = true;
}

int body_put(struct body *body, const void *data, size_t len, struct err *err)
{
	body->received_bytes += len;
	return spool_put(&body->spool, data, len, err);
}

int body_peek(struct body *body, struct slice *out, struct err *err)
{
	return spool_peek(&body->spool, out, err);
}

void body_consume(struct body *body, size_t len)
{
	spool_consume(&body->spool, len);
}

uint64_t body_waiting(const struct body *body)
{
	return spool_waiting(&body->spool);
}

bool body_is_spent(const struct body *body)
{
	return body->is_complete && body_waiting(body) == 0;
}

void body_discard(struct body *body)
{
	spool_fini(&body->spool);
}
