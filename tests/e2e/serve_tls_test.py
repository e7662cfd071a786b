"""`argiope serve` with TLS: real clients, certificates made by openssl, and one that is renewed while clients are there."""
import http.client
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import unittest

from daemon import Daemons, environment

CLIENTS = pathlib.Path(__file__).resolve().parents[2] / 'clients'


class Secured(Daemons):
    """A daemon that speaks HTTPS, with an authority of its own."""

    def setUp(self):
        super().setUp()
        self.authority, self.certificate, self.key = (self.folder / name for name in ('ca.pem', 'cert.pem', 'key.pem'))
        self.openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', 2,
                     '-subj', '/CN=Argiope test authority', '-keyout', self.folder / 'ca.key', '-out', self.authority)
        self.certify()

    def openssl(self, *words):
        subprocess.run(['openssl', *map(str, words)], check=True, capture_output=True, cwd=self.folder)

    def certify(self, name='localhost'):
        """A new certificate and key, in the place of those before."""
        request, extension = self.folder / 'request', self.folder / 'extension'
        extension.write_text('subjectAltName=DNS:localhost,IP:127.0.0.1\n')
        self.openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', f'/CN={name}',
                     '-keyout', self.key, '-out', request)
        self.openssl('x509', '-req', '-in', request, '-CA', self.authority, '-CAkey', self.folder / 'ca.key',
                     '-CAcreateserial', '-days', 2, '-extfile', extension, '-out', self.certificate)

    def start_secured(self, *arguments):
        daemon = self.daemon('--tls-certificate', self.certificate, '--tls-key', self.key, '--listen', '127.0.0.1:0',
                             *arguments, listen='')
        daemon.port = int(daemon.wait_for(r'listening: https://[^ ]*:(\d+)')[1])
        daemon.url = f'https://127.0.0.1:{daemon.port}'
        return daemon

    def context(self):
        return ssl.create_default_context(cafile=self.authority)

    def subject(self, daemon):
        """Of the certificate that a new connection gets."""
        with socket.create_connection(('127.0.0.1', daemon.port), 60) as plain:
            with self.context().wrap_socket(plain, server_hostname='localhost') as secured:
                return secured.getpeercert()['subject'][0][0][1]

    def curl(self, *words, status=0):
        result = subprocess.run(['curl', '--silent', '--show-error', '--max-time', '60', *words], capture_output=True,
                                text=True)
        self.assertEqual(result.returncode, status, result.stderr)
        return result.stdout


class Clients(Secured):
    def test_curl_puts_a_job_and_trusts_nobody_else(self):
        daemon = self.start_secured()
        put = self.curl('--cacert', str(self.authority), '-d', '{"queue":"mail"}', daemon.url + '/v1/jobs')
        self.assertEqual(json.loads(put), {'id': 1, 'outcome': 'added'})
        self.curl(daemon.url + '/healthz', status=60)  # an authority that it does not know
        answer = self.curl(f'http://127.0.0.1:{daemon.port}/healthz')
        self.assertIn('this port speaks HTTPS', answer)

    def test_the_python_client(self):
        daemon = self.start_secured()
        script = '''if True:
            import argiope, asyncio, sys
            url, ca = sys.argv[1:]
            with argiope.Client(url, ca_file=ca) as client:
                for _ in range(3):
                    client.put("mail", "hello")
                try:
                    argiope.Client(url, retry_for=0).put("mail")
                except argiope.Unreachable as error:
                    assert "certificate verify failed" in str(error), error
                else:
                    raise AssertionError("trusted")
            async def main():
                async with argiope.AsyncClient(url, ca_file=ca) as client:
                    print(await asyncio.gather(*(client.put("mail") for _ in range(3))))
            asyncio.run(main())'''
        subprocess.run([sys.executable, '-c', script, daemon.url, str(self.authority)], check=True, timeout=60,
                       stdout=subprocess.PIPE, env=environment(PYTHONPATH=str(CLIENTS / 'python'),
                                                               PYTHONDONTWRITEBYTECODE='1'))
        self.assertEqual(self.ready(daemon), 6)

    def test_the_javascript_client(self):
        daemon = self.start_secured()
        (self.folder / 'put.mjs').write_text(f'''
            import {{ Client }} from "{CLIENTS}/js/src/index.js";
            const client = new Client("{daemon.url}", {{ retryForMs: 0 }});
            await Promise.all([1, 2, 3].map(() => client.put("mail", "hello")));''')
        words = ['node', str(self.folder / 'put.mjs')]
        refused = subprocess.run(words, capture_output=True, timeout=60)
        self.assertNotEqual(refused.returncode, 0)
        subprocess.run(words, check=True, timeout=60, env=environment(NODE_EXTRA_CA_CERTS=str(self.authority)))
        self.assertEqual(self.ready(daemon), 3)

    def ready(self, daemon):
        queue = self.curl('--cacert', str(self.authority), daemon.url + '/v1/queues/mail')
        return json.loads(queue)['counts']['ready']

    def test_beanstalkd_clients_speak_it_where_the_file_says_so(self):
        file = self.file(f'''
            [serve]
            beanstalkd = "127.0.0.1:0"
            tls = {{ certificate = "{self.certificate}", key = "{self.key}", beanstalkd = true }}''')
        daemon = self.daemon('--listen', '127.0.0.1:0', file, listen='')
        port = int(daemon.wait_for(r'beanstalkd at 127\.0\.0\.1:(\d+)')[1])
        with socket.create_connection(('127.0.0.1', port), 60) as plain:
            with self.context().wrap_socket(plain, server_hostname='localhost') as client, client.makefile('rb') as answers:
                client.sendall(b'put 0 0 60 5\r\nhello\r\nreserve\r\n')
                self.assertEqual([answers.readline() for _ in range(3)],
                                 [b'INSERTED 1\r\n', b'RESERVED 1 5\r\n', b'hello\r\n'])
        with socket.create_connection(('127.0.0.1', port), 60) as plain:
            plain.sendall(b'put 0 0 60 5\r\nhello\r\n')
            self.assertEqual(plain.recv(100), b'')


class Starting(Secured):
    def test_beyond_this_machine_it_wants_tokens_and_tls(self):
        tls = ['--tls-certificate', self.certificate, '--tls-key', self.key]
        self.refused('--listen', '0.0.0.0:0', culprit='give a certificate')
        self.refused('--listen', '0.0.0.0:0', *tls, culprit='without tokens they may do everything')
        self.refused('--listen', '0.0.0.0:0', '--insecure', culprit='without tokens they may do everything')

    def test_what_is_wrong_with_the_files_is_told(self):
        self.refused('--tls-certificate', self.certificate, culprit='a certificate and a key, both')
        self.refused('--tls-certificate', 'nowhere.pem', '--tls-key', self.key, culprit='nowhere.pem', status=3)
        self.refused('--tls-certificate', self.authority, '--tls-key', self.key, '--check',
                     culprit='goes with the certificate')


class Renewing(Secured):
    def test_sighup_takes_a_new_certificate_and_keeps_the_old_one_where_that_is_broken(self):
        self.certify('first')
        daemon = self.start_secured()
        open_before = http.client.HTTPSConnection('127.0.0.1', daemon.port, context=self.context(), timeout=60)
        self.addCleanup(open_before.close)
        open_before.request('GET', '/healthz')
        self.assertEqual(open_before.getresponse().read(), b'{"status":"ok"}\n')
        self.assertEqual(self.subject(daemon), 'first')
        self.certify('second')
        daemon.signal(signal.SIGHUP)
        daemon.wait_for('was read again')
        self.assertEqual(self.subject(daemon), 'second')
        self.certificate.write_text('nonsense')
        daemon.signal(signal.SIGHUP)
        daemon.wait_for('stays as it was: .*is no chain of certificates in PEM')
        self.assertEqual(self.subject(daemon), 'second')
        self.certificate.unlink()
        os.mkfifo(self.certificate)
        daemon.signal(signal.SIGHUP)
        daemon.wait_for('stays as it was: .*is not a plain file: it cannot be read again')
        self.assertEqual(self.subject(daemon), 'second')
        open_before.request('GET', '/healthz')
        self.assertEqual(open_before.getresponse().status, 200)


if __name__ == '__main__':
    unittest.main()
