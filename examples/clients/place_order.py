"""Places an order, with nothing but Python's own library.

STEADFAST_BASE_URL, STEADFAST_API_KEY and STEADFAST_ACCESS_TOKEN name the service and the token. An order was not placed if the
answer is a 4xx with a text that the service documents. After anything else it may have been.
"""
import json, os, urllib.error, urllib.parse, urllib.request

order = {"symId": "EQT_INFY_EQ_NSE", "qty": 10, "side": "buy", "type": "limit", "limitPrice": "1500.05",
         "product": "delivery", "validity": "day"}
token = os.environ["STEADFAST_API_KEY"] + ":" + os.environ["STEADFAST_ACCESS_TOKEN"]
request = urllib.request.Request(
    os.environ["STEADFAST_BASE_URL"] + "/api/oms/place-order",
    data=urllib.parse.urlencode(order).encode(),  # a form, never JSON
    headers={"Authorization": "Bearer " + token})
try:
    with urllib.request.urlopen(request, timeout=120) as response:
        print("placed", json.load(response)["d"]["orderId"])
except urllib.error.HTTPError as error:
    text = error.read().decode(errors="replace")
    is_known = error.code != 400 or "Bad request" in text or "Input validation failed" in text
    is_refusal = 400 <= error.code < 500 and is_known
    raise SystemExit(f"{'refused' if is_refusal else 'unknown, look into the order list'}: {error.code} {text}")
except Exception as error:  # whatever it is, the order may have been placed
    raise SystemExit(f"unknown, look into the order list: {error!r}")
