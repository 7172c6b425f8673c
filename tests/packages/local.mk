# Run by pytest, not by `make check`: see CONTRIBUTING.md.
EXTRA_DIST += %D%/conftest.py %D%/debian.py %D%/load.py %D%/source.py \
	%D%/test_debian.py %D%/test_install.py %D%/test_rpm.py %D%/test_systemd.py
