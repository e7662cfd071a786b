"""tools/run-tests.py and .ci/run: what they say of tests that fail once, fail always or hang, with a ctest and a make of our own."""
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Plays a run of three tests, of which OUTCOME says what `second` does: fails in the first run, or in each.
CTEST = r'''#!/bin/sh
folder=build/release/Testing/Temporary
mkdir -p $folder
: >$folder/LastTest.log
alone=
case "$*" in *'-R ^second$'*) alone=yes ;; esac
if [ "$OUTCOME" = hangs ]; then
  echo '      Start  1: first'
  echo '1/3 Test  #1: first ............   Passed    0.01 sec'
  echo '      Start  2: second'
  echo '      Start  3: third'
  echo $$ >pid
  exec sleep 1000
fi
if [ -n "$alone" ] && [ "$OUTCOME" = fails-once ]; then
  echo '100% tests passed, 0 tests failed out of 1'
  exit 0
fi
if [ -n "$alone" ]; then
  echo '0% tests passed, 1 tests failed out of 1'
else
  echo '67% tests passed, 1 tests failed out of 3'
fi
echo 2:second >$folder/LastTestsFailed.log
exit 8
'''


class Folder(unittest.TestCase):
    """A copy of the scripts in a folder of its own, with programs that stand before others in the path."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        os.makedirs(f'{self.folder}/bin')
        for path in ('tools/run-tests.py', 'tools/left-out.sh', '.ci/run'):
            os.makedirs(os.path.dirname(f'{self.folder}/{path}'), exist_ok=True)
            shutil.copy(f'{ROOT}/{path}', f'{self.folder}/{path}')

    def program(self, name, text):
        path = f'{self.folder}/bin/{name}'
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        os.chmod(path, 0o755)

    def start(self, command, **variables):
        environment = dict(os.environ, PATH=f'{self.folder}/bin:{os.environ["PATH"]}', **variables)
        return subprocess.Popen(command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def run_all(self, command, **variables):
        process = self.start(command, **variables)
        output = process.communicate()[0]
        return process.returncode, output


class RunTests(Folder):
    def setUp(self):
        super().setUp()
        self.program('ctest', CTEST)

    def run_tests(self, outcome):
        return self.run_all(['tools/run-tests.py', 'release', '--jobs', '3', '--record', 'record', '--', '-L', 'async'], OUTCOME=outcome)

    def recorded(self):
        with open(f'{self.folder}/record', encoding='utf-8') as file:
            return file.read()

    def test_a_test_that_fails_once_and_passes_alone_is_told_and_the_run_goes_on(self):
        status, output = self.run_tests('fails-once')
        self.assertEqual(status, 0, output)
        self.assertIn('\nflaky: second', output)
        self.assertEqual(self.recorded(), '3 0\nflaky: second\n')

    def test_a_test_that_fails_again_fails_the_run(self):
        status, output = self.run_tests('fails-always')
        self.assertEqual(status, 1, output)
        self.assertIn('\nfailed: second', output)
        self.assertEqual(self.recorded(), '2 1\n')

    def test_a_run_that_is_ended_names_the_tests_that_were_running(self):
        process = self.start(['tools/run-tests.py', 'release', '--record', 'record'], OUTCOME='hangs')
        seen = ''
        while 'Start  3' not in seen:
            line = process.stdout.readline()
            self.assertTrue(line, seen)
            seen += line
        process.send_signal(signal.SIGTERM)
        rest = process.communicate()[0]
        self.assertEqual(process.returncode, 1)
        self.assertIn('Tests that were running: second, third', rest)


class WholeRun(Folder):
    def test_it_ends_itself_at_its_limit_and_names_the_phase(self):
        self.program('make', '#!/bin/sh\ncase $1 in test-programs) exec sleep 1000 ;; esac\n')
        status, output = self.run_all(['bash', '.ci/run'], CI_LIMIT_S='2')
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r'ended after \d+ s, in the phase "build"')
        self.assertTrue(output.endswith('0 passed, 0 failed\n'), output)

    def test_a_phase_that_fails_fails_it(self):
        self.program('make', '#!/bin/sh\ncase $1 in test) echo 5 1 >>"$ARGIOPE_RECORD"; exit 2 ;; esac\n')
        status, output = self.run_all(['bash', '.ci/run'])
        self.assertEqual(status, 1, output)
        self.assertTrue(output.endswith('\n5 passed, 1 failed\n'), output)

    def test_flaky_tests_stand_before_the_closing_line(self):
        self.program('make', '#!/bin/sh\ncase $1 in test) printf "5 0\\nflaky: one\\n" >>"$ARGIOPE_RECORD" ;; run-sanitized) echo 2 0 '
                             '>>"$ARGIOPE_RECORD" ;; esac\n')
        status, output = self.run_all(['bash', '.ci/run'])
        self.assertEqual(status, 0, output)
        self.assertTrue(output.endswith('\nflaky: one\n7 passed, 0 failed\n'), output)


if __name__ == '__main__':
    unittest.main()
