"""`argiope beanstalkd` as those see it who put it in beanstalkd's place: its flags, and clients that notice nothing."""
import os
import pwd
import signal
import socket
import subprocess
import unittest

from daemon import Daemon
from support import ARGIOPE, EndToEnd


class Client:
    def __init__(self, test, address):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family)
        self.socket.settimeout(60)
        self.socket.connect(address)
        self.answers = self.socket.makefile('rb')
        test.addCleanup(self.close)

    def close(self):
        self.answers.close()
        self.socket.close()

    def say(self, text, answers=1):
        self.socket.sendall(text)
        lines = [self.answers.readline() for _ in range(answers)]
        return lines[0] if answers == 1 else lines


class BeanstalkdCommand(EndToEnd):
    def run_it(self, *arguments, **options):
        words = [ARGIOPE, 'beanstalkd', *map(str, arguments)]
        return Daemon(self, subprocess.Popen(words, stderr=subprocess.PIPE, text=True, cwd=self.folder, **options))

    def beanstalkd(self, *arguments, **options):
        """Starts it at a port that is free, and waits until it listens."""
        daemon = self.run_it('-p', 0, *arguments, **options)
        daemon.port = int(daemon.wait_for(r'listening: beanstalkd at [^ ]*:(\d+)')[1])
        return daemon

    def client(self, daemon):
        return Client(self, ('127.0.0.1', daemon.port))

    def refused(self, *arguments, culprit, expect=2):
        result = subprocess.run([ARGIOPE, 'beanstalkd', *map(str, arguments)], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, expect, result.stdout + result.stderr)
        self.assertIn(culprit, result.stderr)

    def test_keeps_jobs_in_memory_without_a_directory(self):
        daemon = self.beanstalkd()
        daemon.wait_for('jobs are kept in memory')
        client = self.client(daemon)
        self.assertEqual(client.say(b'put 0 0 60 5\r\nhello\r\n'), b'INSERTED 1\r\n')
        self.assertEqual(client.say(b'reserve\r\n', 2), [b'RESERVED 1 5\r\n', b'hello\r\n'])
        self.assertEqual(client.say(b'delete 1\r\n'), b'DELETED\r\n')
        daemon.signal(signal.SIGTERM)
        daemon.ended()
        self.assertEqual(os.listdir(self.folder), [])

    def test_keeps_jobs_in_a_directory_whatever_ends_it(self):
        daemon = self.beanstalkd('-b', self.folder)
        client = self.client(daemon)
        self.assertEqual(client.say(b'use mail\r\n'), b'USING mail\r\n')
        for job in range(1, 21):
            self.assertEqual(client.say(b'put 0 0 60 1\r\nx\r\n'), b'INSERTED %d\r\n' % job)
        daemon.process.kill()
        daemon.process.wait()
        client = self.client(self.beanstalkd('-b', self.folder))
        self.assertEqual(client.say(b'watch mail\r\nreserve\r\n', 3)[1:], [b'RESERVED 1 1\r\n', b'x\r\n'])

    def test_takes_old_command_lines(self):
        daemon = self.run_it('-VVl127.0.0.1', '-p0', '-z10', '-f', 50, '-F', '-s', 10485760, '-cn')
        for flag in ('-f', '-F', '-s', '-c', '-n'):
            daemon.wait_for(f'{flag} has no effect')
        daemon.port = int(daemon.wait_for(r'listening: beanstalkd at 127\.0\.0\.1:(\d+)')[1])
        client = self.client(daemon)
        self.assertEqual(client.say(b'put 0 0 60 11\r\nhello there\r\n'), b'JOB_TOO_BIG\r\n')
        self.assertEqual(client.say(b'put 0 0 60 10\r\nhello ther\r\n'), b'INSERTED 1\r\n')

    def test_a_socket_of_this_machine(self):
        path = str(self.folder / 'socket')
        self.run_it('-l', f'unix:{path}').wait_for('listening: beanstalkd at unix:')
        self.assertEqual(Client(self, path).say(b'list-tube-used\r\n'), b'USING default\r\n')

    def test_a_socket_that_was_handed_over_takes_the_place_of_the_address(self):
        listening = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(listening.close)
        script = f'export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=beans.socket; exec "$@" 3<&{listening.fileno()}'
        daemon = Daemon(self, subprocess.Popen(['bash', '-c', script, '-', ARGIOPE, 'beanstalkd', '-l', '0.0.0.0'],
                                               stderr=subprocess.PIPE, text=True, pass_fds=[listening.fileno()]))
        daemon.wait_for('listening: beanstalkd at descriptor 3')
        self.assertEqual(Client(self, listening.getsockname()).say(b'list-tube-used\r\n'), b'USING default\r\n')
        self.assertNotIn('others reach', ''.join(daemon.log))

    def test_says_that_others_reach_it(self):
        self.beanstalkd('-l', '0.0.0.0')
        daemon = self.run_it('-l', '0.0.0.0', '-p', 0)
        daemon.wait_for(r'others reach 0\.0\.0\.0')

    def test_a_signal_refuses_puts(self):
        daemon = self.beanstalkd()
        client = self.client(daemon)
        daemon.signal(signal.SIGUSR1)
        self.wait_until(lambda: client.say(b'put 0 0 60 1\r\nx\r\n') == b'DRAINING\r\n')
        daemon.signal(signal.SIGHUP)
        daemon.wait_for('no configuration')

    @unittest.skipUnless(os.geteuid() == 0, 'only root becomes another')
    def test_becomes_another_user(self):
        nobody = pwd.getpwnam('nobody')
        os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        daemon = self.beanstalkd('-u', 'nobody', '-b', self.folder)
        with open(f'/proc/{daemon.process.pid}/status') as file:
            status = dict(line.rstrip('\n').split(':\t', 1) for line in file if ':\t' in line)
        self.assertEqual(status['Uid'].split(), [str(nobody.pw_uid)] * 4)
        self.assertEqual(status['Gid'].split(), [str(nobody.pw_gid)] * 4)
        self.assertEqual((self.folder / 'argiope-jobs.db').stat().st_uid, nobody.pw_uid)

    def test_says_what_is_wrong(self):
        self.refused('-b', self.folder / 'nowhere', culprit='No such file or directory')
        self.refused('-u', 'no-such-user', culprit='there is no such user')
        self.refused('-l', culprit='-l')
        self.refused('now', culprit='now')
        self.refused('-z', 'large', culprit='-z')
        self.refused('-b', self.folder, '-l', '300.1.1.1', culprit='-l 300.1.1.1:11300: "300.1.1.1" is no address to listen at')
        self.refused('-b', self.folder, '-l', 'unix:/nowhere/socket', culprit='-l unix:/nowhere/socket: No such file', expect=3)
        self.assertEqual(os.listdir(self.folder), [], 'a refused command has made files')

    def test_leaves_no_binlog_behind_unnoticed(self):
        (self.folder / 'binlog.7').touch()
        self.refused('-b', self.folder, culprit='"binlog.7" is beanstalkd\'s')
        self.assertEqual(os.listdir(self.folder), ['binlog.7'])

    def test_says_its_version(self):
        result = subprocess.run([ARGIOPE, 'beanstalkd', '-v'], capture_output=True, text=True, timeout=60, check=True)
        self.assertRegex(result.stdout, r'^argiope \d')


if __name__ == '__main__':
    unittest.main()
