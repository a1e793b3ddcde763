# Started by the suite with the address as only argument: runs the client and writes down how it ended.
"$PARLEY_HEADLESS" conformance "$1"
status=$?
echo "$status" >"$PARLEY_CLIENT_STATUS"
exit "$status"
