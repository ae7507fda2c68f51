// The list of requests by Go's net/http: `clients URL LIST [CERTIFICATE]`. With the server's certificate
// they are made by HTTP/2.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

const rounds, atOnce = 3, 20

func ask(client *http.Client, url string, row []string) error {
	size, _ := strconv.Atoi(row[2])
	var body io.Reader = strings.NewReader(strings.Repeat("x", size))
	if row[3] == "chunked" {
		body = io.MultiReader(body) // Its length is not known.
	}
	request, err := http.NewRequest(row[0], url+row[1], body)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	fine := strconv.Itoa(response.StatusCode) == row[4] && (response.ProtoMajor == 2) == (response.TLS != nil)
	if row[5] == "echo" {
		for _, part := range []string{`"length":` + row[2] + ",", `"method":"` + row[0] + `"`, `"target":"` + row[1] + `"`} {
			fine = fine && strings.Contains(string(text), part)
		}
	} else {
		fine = fine && strconv.Itoa(len(text)) == row[5]
	}
	if !fine {
		return fmt.Errorf("%s, %d bytes: %.200s", response.Status, len(text), text)
	}
	return nil
}

func main() {
	data, err := os.ReadFile(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	var list [][]string
	for _, line := range strings.Split(string(data), "\n") {
		if line != "" && line[0] != '#' {
			list = append(list, strings.Fields(line))
		}
	}
	transport := &http.Transport{MaxIdleConnsPerHost: atOnce}
	protocol := "HTTP/1.1"
	if len(os.Args) > 3 {
		certificate, err := os.ReadFile(os.Args[3])
		if err != nil {
			log.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(certificate)
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
		transport.ForceAttemptHTTP2 = true
		protocol = "HTTP/2"
	}
	client := &http.Client{Transport: transport}
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for range rounds {
				for _, row := range list {
					if err := ask(client, os.Args[1], row); err != nil {
						log.Fatalf("FAILED: Go: %v: %v", row, err)
					}
				}
			}
		})
	}
	all.Wait()
	fmt.Printf("net/http of %s, %s: %d requests\n", runtime.Version(), protocol, len(list)*rounds*atOnce)
}
