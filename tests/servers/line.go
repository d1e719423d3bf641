// A server of a line protocol with a goroutine for each connection, as line.py is one with threads: line PORT LOG
package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

func serve(connection net.Conn, log *os.File) {
	line := make([]byte, 64)
	for {
		n, err := connection.Read(line)
		begin := time.Now()
		if err != nil {
			return
		}
		micros, _ := strconv.Atoi(strings.TrimSpace(string(line[:n])))
		for time.Since(begin) < time.Duration(micros)*time.Microsecond {
		}
		sends := time.Since(begin)
		connection.Write([]byte("ok\n"))
		fmt.Fprintf(log, "0 %d %d\n", sends.Nanoseconds(), time.Since(begin).Nanoseconds())
	}
}

func main() {
	log, _ := os.Create(os.Args[2])
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		panic(err)
	}
	for {
		connection, err := listener.Accept()
		if err == nil {
			go serve(connection, log)
		}
	}
}
