// Places an order, with nothing but Node's own fetch.
//
// STEADFAST_BASE_URL, STEADFAST_API_KEY and STEADFAST_ACCESS_TOKEN name the service and the token. An order was not placed if the
// answer is a 4xx with a text that the service documents. After anything else it may have been.
const { STEADFAST_BASE_URL: base, STEADFAST_API_KEY: key, STEADFAST_ACCESS_TOKEN: token } = process.env;
const order = {
  symId: "EQT_INFY_EQ_NSE", qty: 10, side: "buy", type: "limit", limitPrice: "1500.05",
  product: "delivery", validity: "day",
};
try {
  const answer = await fetch(`${base}/api/oms/place-order`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}:${token}` },
    body: new URLSearchParams(order), // a form, never JSON
    redirect: "manual", // a redirect that is followed sends the order again
    signal: AbortSignal.timeout(120_000),
  });
  const text = await answer.text();
  const isKnown = answer.status !== 400 || /Bad request|Input validation failed/.test(text);
  const isRefusal = answer.status >= 400 && answer.status < 500 && isKnown;
  if (isRefusal) {
    console.error(`refused: ${answer.status} ${text}`);
    process.exitCode = 1;
  } else if (answer.status !== 200) {
    throw new Error(`${answer.status} ${text}`);
  } else {
    console.log("placed", JSON.parse(text).d.orderId);
  }
} catch (error) {
  console.error(`unknown, look into the order list: ${error}`);
  process.exitCode = 1;
}
