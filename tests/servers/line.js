// A server of a line protocol on an event loop, as line.py is one with threads: node line.js PORT LOG
const net = require("net"), fs = require("fs");
const log = fs.openSync(process.argv[3], "w");
net.createServer((socket) => {
  socket.setNoDelay(true);
  socket.on("error", () => {});
  socket.on("data", (data) => {
    const begin = process.hrtime.bigint();
    const until = begin + BigInt(parseInt(data.toString(), 10)) * 1000n;
    while (process.hrtime.bigint() < until);
    const sends = process.hrtime.bigint();
    socket.write("ok\n");
    fs.writeSync(log, `${begin} ${sends} ${process.hrtime.bigint()}\n`);
  });
}).listen(parseInt(process.argv[2], 10), "127.0.0.1");
