include tests/unit/local.mk
include tests/fuzz/local.mk
include tests/bench/local.mk
include tests/system/local.mk
include tests/packages/local.mk
