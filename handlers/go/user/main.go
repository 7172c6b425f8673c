// GET …/{id} is answered with a user from a PostgreSQL database (Debian: golang-github-lib-pq-dev).
//
// PGHOST, PGDATABASE and so on say where the database is. DATABASE_CONNECTION=per-request connects anew for every request;
// otherwise a worker or server keeps its connections.
package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"path"
	"strconv"

	_ "github.com/lib/pq"

	"handlers/serve"
)

type user struct {
	ID    int32  `json:"id"`
	Name  string `json:"name"`
	Email string `json:"email"`
}

type lookup struct{ database *sql.DB }

func (l lookup) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	id, err := strconv.ParseInt(path.Base(request.URL.Path), 10, 32)
	if err != nil {
		http.Error(response, "the id is no number", http.StatusBadRequest)
		return
	}
	var found user
	err = l.database.QueryRow("SELECT id, name, email FROM users WHERE id = $1", id).
		Scan(&found.ID, &found.Name, &found.Email)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		http.Error(response, "no such user", http.StatusNotFound)
	case err != nil:
		log.Print(err)
		http.Error(response, "the database does not answer", http.StatusServiceUnavailable)
	default:
		response.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(response)
		encoder.SetEscapeHTML(false)
		encoder.Encode(found)
	}
}

func main() {
	database, err := sql.Open("postgres", "")
	if err != nil {
		log.Fatal(err)
	}
	if os.Getenv("DATABASE_CONNECTION") == "per-request" {
		database.SetMaxIdleConns(0)
	} else {
		database.SetMaxIdleConns(100)
	}
	serve.Run(lookup{database})
}
