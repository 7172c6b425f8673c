# Completion for shells.  What it offers comes from `fcgi-host --help` and
# `fcgi-host check --print`: a new command needs no change here.
dist_bashcompletion_DATA = %D%/fcgi-host
dist_zshcompletion_DATA = %D%/_fcgi-host
dist_fishcompletion_DATA = %D%/fcgi-host.fish
