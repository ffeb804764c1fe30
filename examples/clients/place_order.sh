#!/bin/sh
# Places an order, with curl. Without --retry and --location: both send it again.
#
# STEADFAST_BASE_URL, STEADFAST_API_KEY and STEADFAST_ACCESS_TOKEN name the service and the token. An order was not placed if the
# answer is a 4xx with a text that the service documents. After anything else it may have been.
set -u
# The header comes from standard input: arguments can be seen by every user of the machine.
answer=$(curl --silent --show-error --max-time 120 --write-out ' %{http_code}' --header @- \
    --data 'symId=EQT_INFY_EQ_NSE&qty=10&side=buy&type=limit&limitPrice=1500.05&product=delivery&validity=day' \
    "$STEADFAST_BASE_URL/api/oms/place-order" <<END
Authorization: Bearer $STEADFAST_API_KEY:$STEADFAST_ACCESS_TOKEN
END
)
id=$(printf '%s' "$answer" | sed -n 's/.*"orderId":"\([^"]*\)".* 200$/\1/p')
case $answer in
*'"s":"ok"'*' 200') [ -n "$id" ] && echo "placed $id" && exit 0 ;;
*'Bad request'*' 400' | *'Input validation failed'*' 400' | *' 40'[1-9] | *' 4'[1-9][0-9]) echo "refused: $answer" >&2 && exit 1 ;;
esac
echo "unknown, look into the order list: $answer" >&2
exit 1
