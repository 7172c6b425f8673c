#include "base/log.h"

#include "base/clock.h"
#include "base/escape.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

enum {
	WAITING_MAX_BYTES = 1024 * 1024,        /* lines that wait for a slow reader */
	LINE_MAX_BYTES = 512 * 1024,            /* a line of 64 KiB, every byte escaped */
	LINE_SPARE_BYTES = 8 * 1024,            /* of a line, for the fields behind a value that fills it */
	PIPE_BYTES = 4096,                      /* a pipe that polls writable takes this much at once */
};

enum target { TARGET_FILE, TARGET_STREAM, TARGET_SYSLOG };

static struct {
	int fd;
	enum target target;
	enum log_format format;
	enum log_level level;
	char *path;                             /* NULL: stderr or syslog */
	struct bytes waiting;
	uint64_t dropped;                       /* since the start */
	uint64_t dropped_unsaid;                /* not told in a line yet */
	void (*on_waiting)(void *ctx);
	void *ctx;
} the_log = { .fd = STDERR_FILENO, .target = TARGET_STREAM, .level = LOG_LEVEL_INFO,
	.waiting = { .max_bytes = WAITING_MAX_BYTES } };

static const char *const level_names[] = { "error", "warning", "info", "debug" };
static const int syslog_levels[] = { LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

static enum target target_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? TARGET_FILE : TARGET_STREAM;
}

/* Again, too: to whoever has taken the place of the one that was there. */
static int connect_syslog(int fd, struct err *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "/dev/log" };

	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return err_set_errno(err, errno, "log: syslog at /dev/log");
	return 0;
}

static int open_syslog(struct err *err)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_set_errno(err, errno, "log: socket");
	if (connect_syslog(fd, err) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static int open_path(const char *path, struct err *err)
{
	/* Without a reader a named pipe is an error, not a wait. */
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);

	if (fd < 0)
		return err_set_errno(err, errno, "log: %s", path);
	return fd;
}

int log_open(const struct log_options *options, struct err *err)
{
	char *path = NULL;
	int fd;

	if (strcmp(options->file, "stderr") == 0) {
		fd = STDERR_FILENO;
	} else if (strcmp(options->file, "syslog") == 0) {
		fd = open_syslog(err);
	} else {
		path = strdup(options->file);
		fd = path == NULL ? err_set(err, "log: no memory") : open_path(path, err);
	}
	if (fd < 0) {
		free(path);
		return -1;
	}
	log_close();
	the_log.fd = fd;
	the_log.path = path;
	the_log.target = strcmp(options->file, "syslog") == 0 ? TARGET_SYSLOG : target_of(fd);
	the_log.format = options->format;
	the_log.level = options->level;
	return 0;
}

void log_close(void)
{
	log_flush();
	if (the_log.fd > STDERR_FILENO)
		close(the_log.fd);
	free(the_log.path);
	the_log.path = NULL;
	the_log.fd = STDERR_FILENO;
	the_log.target = TARGET_STREAM;
	bytes_release(&the_log.waiting);
}

int log_reopen(struct err *err)
{
	int fd;

	if (the_log.target == TARGET_SYSLOG)
		return connect_syslog(the_log.fd, err);
	if (the_log.path == NULL)
		return 0;
	fd = open_path(the_log.path, err);
	if (fd < 0)
		return -1;
	log_flush();
	close(the_log.fd);
	the_log.fd = fd;
	the_log.target = target_of(fd);
	return 0;
}

void log_on_waiting(void (*on_waiting)(void *ctx), void *ctx)
{
	the_log.on_waiting = on_waiting;
	the_log.ctx = ctx;
}

uint64_t log_lines_dropped(void)
{
	return the_log.dropped;
}

bool log_wants(enum log_level level)
{
	return level <= the_log.level;
}

/* Bytes written, 0 when it would block, -1 when they are lost. */
static ssize_t write_some(const uint8_t *data, size_t len)
{
	struct pollfd pfd = { .fd = the_log.fd, .events = POLLOUT };
	ssize_t n;

	if (the_log.target == TARGET_STREAM) {
		if (poll(&pfd, 1, 0) != 1 || (pfd.revents & POLLOUT) == 0)
			return pfd.revents & (POLLERR | POLLNVAL) ? -1 : 0;
		if (len > PIPE_BYTES)
			len = PIPE_BYTES;
	}
	n = write(the_log.fd, data, len);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return n;
}

static void count_lost(uint64_t lines)
{
	the_log.dropped += lines;
	the_log.dropped_unsaid += lines;
}

/* A full disk or a reader that is gone: nothing to wait for. */
static void drop_waiting(void)
{
	const uint8_t *data = bytes_data(&the_log.waiting);

	for (size_t i = 0; i < the_log.waiting.len; i++)
		count_lost(data[i] == '\n');
	bytes_clear(&the_log.waiting);
}

bool log_flush(void)
{
	while (the_log.waiting.len > 0) {
		ssize_t n = write_some(bytes_data(&the_log.waiting), the_log.waiting.len);

		if (n == 0)
			return false;
		if (n < 0)
			drop_waiting();
		else
			bytes_consume(&the_log.waiting, (size_t)n);
	}
	if (the_log.waiting.cap > WAITING_MAX_BYTES / 8)
		bytes_release(&the_log.waiting);
	return true;
}

/* The same in both formats: JSON wants the backslash escaped. */
static void put_escaped(struct bytes *out, struct slice value)
{
	escape_text(out, value, the_log.format == LOG_FORMAT_JSON ? "\\\\x" : "\\x");
}

static bool needs_quotes(struct slice value)
{
	if (value.len == 0 || slice_is(value, "-"))
		return true;
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.ptr[i];

		if (c <= ' ' || c == '"' || c == '\\' || c == '=' || c >= 0x7f)
			return true;
	}
	return false;
}

static void put_name(struct log_line *line, const char *name)
{
	bool is_first = line->text.len == 0 || (the_log.format == LOG_FORMAT_JSON && line->text.len == 1);

	if (the_log.format == LOG_FORMAT_JSON)
		bytes_append_text(&line->text, is_first ? "\"" : ",\"");
	else if (!is_first)
		bytes_append(&line->text, " ", 1);
	bytes_append_text(&line->text, name);
	bytes_append_text(&line->text, the_log.format == LOG_FORMAT_JSON ? "\":" : "=");
}

/* What a line has no room for is cut off the value, so that its quotes and the
 * fields behind it are always there. */
static struct slice fit(const struct log_line *line, struct slice value)
{
	size_t room = bytes_room(&line->text);
	size_t most = room > LINE_SPARE_BYTES ? (room - LINE_SPARE_BYTES) / ESCAPED_MAX_BYTES : 0;

	return (struct slice){ value.ptr, value.len < most ? value.len : most };
}

void log_slice(struct log_line *line, const char *name, struct slice value)
{
	bool has_quotes;

	if (!line->is_wanted)
		return;
	value = fit(line, value);
	has_quotes = the_log.format == LOG_FORMAT_JSON || needs_quotes(value);
	put_name(line, name);
	if (has_quotes)
		bytes_append_text(&line->text, "\"");
	put_escaped(&line->text, value);
	if (has_quotes)
		bytes_append_text(&line->text, "\"");
}

void log_none(struct log_line *line, const char *name)
{
	if (!line->is_wanted)
		return;
	put_name(line, name);
	bytes_append_text(&line->text, the_log.format == LOG_FORMAT_JSON ? "null" : "-");
}

void log_str(struct log_line *line, const char *name, const char *value)
{
	if (value == NULL)
		log_none(line, name);
	else
		log_slice(line, name, slice_of(value));
}

/* printf() would be most of what a request costs in user space. */
static void put_number(struct bytes *out, uint64_t value, size_t digits_min)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0 || sizeof(digits) - at < digits_min);
	bytes_append(out, digits + at, sizeof(digits) - at);
}

void log_u64(struct log_line *line, const char *name, uint64_t value)
{
	if (!line->is_wanted)
		return;
	put_name(line, name);
	put_number(&line->text, value, 1);
}

void log_i64(struct log_line *line, const char *name, int64_t value)
{
	if (!line->is_wanted)
		return;
	put_name(line, name);
	if (value < 0)
		bytes_append(&line->text, "-", 1);
	put_number(&line->text, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 1);
}

void log_ms(struct log_line *line, const char *name, uint64_t ns)
{
	if (!line->is_wanted)
		return;
	put_name(line, name);
	put_number(&line->text, ns / 1000000, 1);
	bytes_append(&line->text, ".", 1);
	put_number(&line->text, ns / 1000 % 1000, 3);
}

void log_begin(struct log_line *line, enum log_level level, const char *event)
{
	char stamp[32];

	bytes_init(&line->text, LINE_MAX_BYTES);
	line->level = level;
	line->is_wanted = log_wants(level);
	if (!line->is_wanted)
		return;
	bytes_reserve(&line->text, 512);
	if (the_log.format == LOG_FORMAT_JSON)
		bytes_append_text(&line->text, "{");
	clock_stamp(stamp, sizeof(stamp));
	log_str(line, "time", stamp);
	log_str(line, "level", level_names[level]);
	log_str(line, "event", event);
}

/* Its socket was closed: it has ended, or was started anew. */
static bool is_syslog_gone(int errnum)
{
	return errnum == ECONNREFUSED || errnum == ENOTCONN || errnum == ECONNRESET || errnum == ENOENT;
}

static void send_syslog(const struct log_line *line)
{
	char head[64];
	int head_len = snprintf(head, sizeof(head), "<%d>fcgi-host[%d]: ",
		LOG_DAEMON | syslog_levels[line->level], (int)getpid());
	struct iovec parts[2] = {
		{ head, (size_t)head_len },
		{ bytes_data(&line->text), line->text.len },
	};
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	ssize_t n = sendmsg(the_log.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	struct err err;

	if (n < 0 && is_syslog_gone(errno) && connect_syslog(the_log.fd, &err) == 0)
		n = sendmsg(the_log.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		count_lost(1);
}

static void queue(const struct log_line *line)
{
	bool was_empty = the_log.waiting.len == 0;

	if (bytes_room(&the_log.waiting) < line->text.len + 1) {
		count_lost(1);
		return;
	}
	if (bytes_append(&the_log.waiting, bytes_data(&line->text), line->text.len) == 0)
		bytes_append(&the_log.waiting, "\n", 1);
	if (the_log.on_waiting == NULL)
		log_flush();
	else if (was_empty)
		the_log.on_waiting(the_log.ctx);
}

static void say_dropped(void)
{
	struct log_line line;
	uint64_t count = the_log.dropped_unsaid;

	if (count == 0 || bytes_room(&the_log.waiting) < WAITING_MAX_BYTES / 2)
		return;
	the_log.dropped_unsaid = 0;
	log_begin(&line, LOG_LEVEL_WARNING, "log_dropped");
	log_u64(&line, "lines", count);
	log_str(&line, "msg", "the log's reader was too slow; lines were dropped");
	log_end(&line);
}

void log_end(struct log_line *line)
{
	if (line->is_wanted) {
		say_dropped();
		if (the_log.format == LOG_FORMAT_JSON)
			bytes_append_text(&line->text, "}");
		if (the_log.target == TARGET_SYSLOG)
			send_syslog(line);
		else
			queue(line);
	}
	bytes_fini(&line->text);
}

void log_message(enum log_level level, const char *event, const char *format, ...)
{
	struct log_line line;
	char text[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	log_begin(&line, level, event);
	log_str(&line, "msg", text);
	log_end(&line);
}
