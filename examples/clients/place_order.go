// Places an order, with nothing but Go's own library.
//
// STEADFAST_BASE_URL, STEADFAST_API_KEY and STEADFAST_ACCESS_TOKEN name the service and the token. An order was not placed if the
// answer is a 4xx with a text that the service documents. After anything else it may have been.
package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	order := url.Values{"symId": {"EQT_INFY_EQ_NSE"}, "qty": {"10"}, "side": {"buy"}, "type": {"limit"},
		"limitPrice": {"1500.05"}, "product": {"delivery"}, "validity": {"day"}}
	request, err := http.NewRequest("POST", os.Getenv("STEADFAST_BASE_URL")+"/api/oms/place-order",
		strings.NewReader(order.Encode()))
	if err != nil {
		log.Fatal("not sent: ", err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("STEADFAST_API_KEY")+":"+os.Getenv("STEADFAST_ACCESS_TOKEN"))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded") // a form, never JSON
	client := http.Client{Timeout: 2 * time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a redirect that is followed sends the order again
	}}
	answer, err := client.Do(request)
	if err != nil {
		log.Fatal("unknown, look into the order list: ", err)
	}
	text, err := io.ReadAll(answer.Body)
	isKnown := answer.StatusCode != 400 || strings.Contains(string(text), "Bad request") ||
		strings.Contains(string(text), "Input validation failed")
	isRefusal := answer.StatusCode >= 400 && answer.StatusCode < 500 && isKnown
	if err == nil && isRefusal {
		log.Fatalf("refused: %d %s", answer.StatusCode, text)
	}
	var placed struct{ D struct{ OrderID string } }
	if err != nil || answer.StatusCode != 200 || json.Unmarshal(text, &placed) != nil || placed.D.OrderID == "" {
		log.Fatalf("unknown, look into the order list: %d %s", answer.StatusCode, text)
	}
	os.Stdout.WriteString("placed " + placed.D.OrderID + "\n")
}
