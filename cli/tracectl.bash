# SPDX-License-Identifier: LGPL-2.1-or-later
# bash completion for tracectl: the command itself knows what may follow.

_tracectl()
{
	local line=${COMP_LINE:0:COMP_POINT} current candidates words=() rest
	# Split at blanks alone: event names have colons, at which COMP_WORDS is cut.
	read -ra words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=("")
	current=${words[-1]}
	mapfile -t candidates < <("${words[0]}" __complete -- "${words[@]:1}" 2>/dev/null)
	COMPREPLY=()
	case ${candidates[0]-} in
	:file)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return ;;
	:command)
		mapfile -t COMPREPLY < <(compgen -c -f -- "$current")
		return ;;
	esac
	COMPREPLY=("${candidates[@]}")
	# readline puts back what stands before the last colon.
	if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then
		rest=${current%"${current##*:}"}
		COMPREPLY=("${COMPREPLY[@]#"$rest"}")
	fi
}
complete -F _tracectl tracectl
