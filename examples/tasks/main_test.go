package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/glebarez/sqlite"
)

// A client creates a user and five tasks, and reads them page by page.
func TestService(t *testing.T) {
	handler, err := serve(sqlite.Open("file::memory:?cache=shared"))
	if err != nil {
		t.Fatal(err)
	}
	call := func(method, path, body string, status int) (answer struct {
		ID, Next string
		Tasks    []struct{ ID, Text string }
	}) {
		t.Helper()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		if w.Code != status {
			t.Fatalf("%s %s: want the status %d, got %d %s", method, path, status, w.Code, w.Body)
		}
		if status == http.StatusOK && path != "/metrics" {
			if err := json.NewDecoder(w.Body).Decode(&answer); err != nil {
				t.Fatal(err)
			}
		}
		return answer
	}
	user := call("POST", "/users", `{"name": "Ada"}`, http.StatusOK).ID
	tasks := "/users/" + user + "/tasks"
	if !strings.HasPrefix(user, "user_") {
		t.Errorf("want an ID with a prefix, got %q", user)
	}
	for _, text := range []string{"a", "b", "c", "d", "e"} {
		call("POST", tasks, `{"text": "`+text+`"}`, http.StatusOK)
	}
	var texts, pages string
	for page := call("GET", tasks, "", http.StatusOK); ; page = call("GET", tasks+"?after="+page.Next, "", http.StatusOK) {
		for _, task := range page.Tasks {
			texts += task.Text
		}
		if pages += "|"; page.Next == "" {
			break
		}
	}
	if texts != "abcde" || pages != "|||" {
		t.Errorf("want the tasks a to e in three pages, got %q in %d", texts, len(pages))
	}
	call("GET", tasks+"?after="+user, "", http.StatusBadRequest) // the ID of a user is no task's
	call("GET", "/users/user_01h455vb4pex5vsknk084sn02q/tasks", "", http.StatusNotFound)
	call("GET", "/metrics", "", http.StatusOK)
}
