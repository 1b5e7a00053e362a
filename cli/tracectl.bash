# SPDX-License-Identifier: LGPL-2.1-or-later
# bash completion for tracectl: the command itself knows what may follow.

_tracectl()
{
	local line=${COMP_LINE:0:COMP_POINT} program current candidates words=() break rest
	# Split at blanks alone: event names have colons, at which COMP_WORDS is cut.
	read -ra words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=("")
	program=${words[0]/#~\//$HOME/}
	# A quote that is open belongs to the shell.
	current=${words[-1]#[\"\']}
	words[-1]=$current
	mapfile -t candidates < <("$program" __complete -- "${words[@]:1}" 2>/dev/null)
	COMPREPLY=()
	# Of --option=VALUE, VALUE is completed.
	rest=
	if [[ $current == --*=* ]]; then
		rest=${current%%=*}=
		current=${current#*=}
		[[ $COMP_WORDBREAKS == *=* ]] && rest=
	fi
	case ${candidates[0]-} in
	:file)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -P "$rest" -f -- "$current")
		return ;;
	:command)
		mapfile -t COMPREPLY < <(compgen -c -f -- "$current")
		return ;;
	esac
	COMPREPLY=("${candidates[@]/#/$rest}")
	# readline puts back what stands before the last colon.
	if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then
		break=$rest${current%"${current##*:}"}
		COMPREPLY=("${COMPREPLY[@]#"$break"}")
	fi
}
# Loaded as the file that has the program's name.
_tracectl_name=${BASH_SOURCE[0]##*/}
complete -F _tracectl "${_tracectl_name%.bash}"
unset _tracectl_name
