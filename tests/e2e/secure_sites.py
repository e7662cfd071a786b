"""Servers with TLS: certificates made by openssl for each test, nginx and the synthetic web with them."""
import os
import shutil
import subprocess

from support import EndToEnd, free_port, wait_for_port


class SecureSites(EndToEnd):
    def setUp(self):
        super().setUp()
        self.authority, self.certificate, self.key = (self.folder / name for name in ('ca.pem', 'cert.pem', 'key.pem'))
        curve = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes')
        self.openssl('req', '-x509', *curve, '-days', 2, '-subj', '/CN=Argiope test authority',
                     '-keyout', self.folder / 'ca.key', '-out', self.authority)
        extension = self.folder / 'extension'
        extension.write_text('subjectAltName=DNS:localhost,IP:127.0.0.1\n')
        self.openssl('req', *curve, '-subj', '/CN=localhost', '-keyout', self.key, '-out', self.folder / 'request')
        self.openssl('x509', '-req', '-in', self.folder / 'request', '-CA', self.authority, '-CAkey', self.folder / 'ca.key',
                     '-CAcreateserial', '-days', 2, '-extfile', extension, '-out', self.certificate)

    def openssl(self, *words):
        subprocess.run(['openssl', *map(str, words)], check=True, capture_output=True, cwd=self.folder)

    def nginx_by_tls(self, root, more='', protocols='ssl http2'):
        port, log = free_port(), self.folder / 'access.log'
        config = self.folder / 'nginx.conf'
        temporary = '\n'.join(f'{kind}_temp_path {self.folder}/tmp;'
                              for kind in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
        config.write_text(f'''
            daemon off; worker_processes 1; pid {self.folder}/nginx.pid; error_log {self.folder}/error.log;
            user {"root" if os.geteuid() == 0 else os.environ.get("USER", "nobody")};
            events {{ worker_connections 2048; }}
            http {{
              include /etc/nginx/mime.types; gzip on; gzip_types text/html; gzip_proxied any;
              log_format short '$server_protocol $connection $status $request_uri'; access_log {log} short; {temporary}
              server {{
                listen 127.0.0.1:{port} {protocols}; root {root}; {more}
                ssl_certificate {self.certificate}; ssl_certificate_key {self.key};
              }}
            }}''')
        nginx = shutil.which('nginx') or '/usr/sbin/nginx'
        if not os.path.exists(nginx):
            self.skipTest('nginx is not installed')
        self.start([nginx, '-p', str(self.folder), '-c', str(config)], stderr=subprocess.DEVNULL)
        wait_for_port(port)
        return f'https://127.0.0.1:{port}/', log

    def site_by_tls(self, *arguments):
        return self.site('--tls-certificate', self.certificate, '--tls-key', self.key, *arguments)
