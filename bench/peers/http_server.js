// The peer of bench/http_server.cpp: gives a body back. Writes its port to descriptor 3.
const fs = require('fs');
const http = require('http');

const server = http.createServer((request, response) => {
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => {
    const body = Buffer.concat(pieces);
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length });
    response.end(body);
  });
});
server.listen(0, '127.0.0.1', () => {
  const port = Buffer.alloc(2);
  port.writeUInt16LE(server.address().port);
  fs.writeSync(3, port);
});
