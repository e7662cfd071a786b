"""`argiope token` as a contract: what it prints, what it keeps, and its exit status."""
import concurrent.futures
import hashlib
import json
import os
import subprocess
import tempfile
import unittest

from support import ARGIOPE, PATIENCE


class Token(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = os.path.join(self.folder.name, 'argiope-tokens.jsonl')

    def run_token(self, *arguments, expect=0):
        result = subprocess.run([ARGIOPE, 'token', *arguments], capture_output=True, text=True, timeout=PATIENCE,
                                cwd=self.folder.name)
        self.assertEqual(result.returncode, expect, result.stdout + result.stderr)
        return result

    def kept(self):
        return [json.loads(line) for line in self.run_token('list', '--json').stdout.splitlines()]

    def test_prints_the_words_once_and_keeps_their_digest(self):
        words = self.run_token('add', 'ci', '--scope', 'work', '--prefix', 'mail', '--prefix', 'sms/').stdout.strip()
        self.assertRegex(words, r'^argiope_[A-Za-z0-9_-]{43}$')
        with open(self.file) as file:
            line = json.loads(file.read())
        self.assertEqual(line['digest'], hashlib.sha256(words.encode()).hexdigest())
        self.assertEqual((line['name'], line['scope'], line['prefixes']), ('ci', 'work', ['mail', 'sms/']))
        self.assertEqual(os.stat(self.file).st_mode & 0o777, 0o600)

    def test_a_refused_command_leaves_no_file(self):
        self.run_token('remove', 'nobody', expect=2)
        self.run_token('add', 'n' * 100, expect=2)
        self.run_token('add', 'n', '--prefix', '', expect=2)
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_lists_and_removes(self):
        self.run_token('add', 'ci')
        self.run_token('add', 'boss', '--scope', 'admin', '--expires-in', '90d')
        self.assertEqual([(t['name'], t['scope'], t['expires_at'] is None) for t in self.kept()],
                         [('ci', 'work', True), ('boss', 'admin', False)])
        table = self.run_token('list').stdout
        self.assertIn('boss', table)
        self.run_token('remove', 'ci')
        self.assertEqual([t['name'] for t in self.kept()], ['boss'])

    def test_says_what_is_wrong(self):
        self.run_token('add', 'ci')
        self.assertIn('there is one of that name', self.run_token('add', 'ci', expect=2).stderr)
        self.assertIn('no token "nobody"', self.run_token('remove', 'nobody', expect=2).stderr)
        self.assertIn('--scope', self.run_token('add', 'x', '--scope', 'root', expect=2).stderr)
        self.run_token(expect=2)
        os.chmod(self.file, 0o666)
        self.assertIn('others may write it', self.run_token('list', expect=2).stderr)
        os.chmod(self.file, 0o600)
        with open(self.file, 'a') as file:
            file.write('{"name":"x"}\n')
        self.assertIn('argiope-tokens.jsonl:2: ', self.run_token('list', expect=2).stderr)

    def test_many_at_the_same_time_lose_none(self):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda i: self.run_token('add', f't{i}'), range(12)))
        self.assertEqual({t['name'] for t in self.kept()}, {f't{i}' for i in range(12)})


if __name__ == '__main__':
    unittest.main()
