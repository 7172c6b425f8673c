# fish completion for fcgi-host
#
# The commands and how each is used come from `fcgi-host --help`, the names of
# handlers and the paths from the configuration.

function __fcgi_host_usage --description 'How the command on the line is used'
    set -l words (commandline -opc)
    $words[1] --help 2>/dev/null | string replace --filter --regex "^  fcgi-host $words[2] " ''
end

function __fcgi_host_print --description 'The configuration, by -c on the line or the default one, whole'
    set -l words (commandline -opc)
    set -l at (contains --index -- -c $words)
    set -l config
    if set -q at[1]; and set -q words[(math $at + 1)]
        set config -c $words[(math $at + 1)]
    end
    $words[1] check --print $config 2>/dev/null
end

function __fcgi_host_values --description 'What may stand in the place of a word of the usage'
    switch "$argv[1]"
        case FILE
            __fish_complete_path (commandline -ct)
        case HANDLER
            __fcgi_host_print | sed -n '/^handlers:/,/^[^ ]*:/s/^  \([^ :]*\):$/\1/p'
        case PATH URL
            __fcgi_host_print | sed -n "s/^- {path: '\{0,1\}\([^ ,'}*{]*\).*/\1/p"
        case METHOD
            printf '%s\n' GET HEAD POST PUT PATCH DELETE OPTIONS
    end
end

function __fcgi_host_complete
    set -l words (commandline -opc)
    if test (count $words) -lt 2
        $words[1] --help 2>/dev/null | string replace --filter --regex '^  fcgi-host ([a-z-]+).*' '$1'
        printf '%s\n' --help --version
        return
    end
    set -l usage (__fcgi_host_usage)
    if string match --quiet -- '-*' $words[-1]
        set -l word (string match --regex -- "(?:^|[^\w-])$words[-1] ([A-Z]+)" $usage)
        if set -q word[2]
            __fcgi_host_values $word[2]
            return
        end
    end
    if string match --quiet -- '-*' (commandline -ct)
        string match --all --regex -- '(?<![\w-])--?[A-Za-z][\w-]*' $usage | sort -u
        return
    end
    # The words that are no options, and the place of this one among them.
    set -l places (string replace --all --regex -- "-[\w-]+ (@?[A-Z]+|'[^']*')" '' $usage | string match --all --regex '[A-Z]{2,}')
    set -l at 1
    set -l is_value 0
    for word in $words[3..-1]
        if test $is_value = 1
            set is_value 0
        else if not string match --quiet -- '-*' $word
            set at (math $at + 1)
        else if string match --quiet --regex -- "(^|[^\w-])$word [A-Z@']" $usage
            set is_value 1
        end
    end
    set -q places[$at]; and __fcgi_host_values $places[$at]
end

complete --command fcgi-host --no-files --arguments '(__fcgi_host_complete)'
