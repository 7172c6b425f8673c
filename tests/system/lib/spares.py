"""Processes that wait for a request: how many a host has, and how a request was served."""
import json

from .wait import wait_until


def status_of(host, name):
    """What the host says of a handler."""
    told = host.command("status", "-c", str(host.config), "--json")
    assert told.returncode == 0, f"{told.stderr.decode()}\n{host.log_text()[-3000:]}"
    status = json.loads(told.stdout)
    return next((h for h in status["handlers"] if h["name"] == name), None)


def zygotes(host, name):
    """Pids of its processes that fork others."""
    return [p["pid"] for p in status_of(host, name)["process_list"] if p["state"] == "zygote"]


def waiting(host, name):
    """Pids of a handler's processes that are ready for a request."""
    return [p["pid"] for p in status_of(host, name)["process_list"] if p["state"] == "idle"]


def wait_ready(host, name, count=1, timeout=10):
    try:
        return wait_until(lambda: len(found := waiting(host, name)) >= count and found, timeout, f"{count} process(es) of {name} waiting")
    except AssertionError as e:
        raise AssertionError(f"{e}; the log has:\n{host.log_text()[-4000:]}") from None


def served(host, answer_id):
    """How the request of this id got its process: cold, parked or forked."""
    return host.wait_log(event="request", id=answer_id)["start"]
