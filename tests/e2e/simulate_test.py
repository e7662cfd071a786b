"""`argiope simulate` as a contract: its reports, its exit status, and what it says of a file that is wrong."""
import json
import pathlib
import re
import subprocess
import unittest

from support import ARGIOPE, EndToEnd

ALL = '''
[[queue]]
name = "slow"
workers = 1

[[schedule]]
name = "piles up"
trigger = "*/10 * * * *"
job = { queue = "slow", function = "report" }
overlap = "queue_all"

[[schedule]]
name = "leap"
trigger = "0 12 30 2 *"

[[schedule]]
name = "nightly"
trigger = { type = "cron", expression = "30 2 * * *", zone = "Europe/Berlin" }

[[schedule]]
name = "noon"
trigger = "0 12 * * *"

[[schedule]]
name = "also noon"
trigger = "0 12 * * mon"

[simulate]
seed = 3
[[simulate.job]]
function = "report"
duration = { distribution = "uniform", from = "10m", to = "20m" }
'''


class Simulate(EndToEnd):
    def write(self, text, name='argiope.toml'):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def run_it(self, *arguments, expect=0):
        result = subprocess.run([ARGIOPE, 'simulate', *map(str, arguments)], capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, expect, result.stdout + result.stderr)
        return result

    def report(self, text, *arguments):
        result = self.run_it(self.write(text), '--json', *arguments)
        self.assertEqual(result.stdout.count('\n'), 1)
        return json.loads(result.stdout)

    def test_a_year_with_a_pile_up_a_collision_what_never_runs_and_two_changes_of_the_clocks(self):
        report = self.report(ALL, '--from', '2026-01-01', '--for', '365d')
        self.assertEqual((report['from'], report['until'], report['seed'], report['stopped']),
                         ('2026-01-01T00:00:00Z', '2027-01-01T00:00:00Z', 3, None))
        schedules = {schedule['name']: schedule for schedule in report['schedules']}
        self.assertEqual(schedules['piles up']['runs'], 365 * 144)
        self.assertEqual(schedules['nightly']['runs'], 365)
        self.assertEqual(schedules['noon']['first'], '2026-01-01T12:00:00Z')
        self.assertEqual(schedules['noon']['next'], '2027-01-01T12:00:00Z')
        self.assertEqual(schedules['noon']['lateness']['max_ms'], 0)
        self.assertEqual([never['name'] for never in report['never']], ['leap'])
        self.assertIn('never', report['never'][0]['why'])

        queues = {queue['name']: queue for queue in report['queues']}
        self.assertEqual(queues['slow']['trend'], 'piles_up')
        # 144 come a day, and 96 of 15 minutes go.
        self.assertAlmostEqual(queues['slow']['growth_per_day'], 48, delta=2)
        self.assertGreater(queues['slow']['waiting'], 17_000)
        self.assertEqual(queues['slow']['put'], queues['slow']['done'] + queues['slow']['waiting'] + 1)
        self.assertEqual(queues['default']['trend'], 'keeps_up')
        self.assertFalse(queues['default']['configured'])

        mondays = next(entry for entry in report['collisions'] if 'also noon' in entry['schedules'])
        self.assertEqual((sorted(mondays['schedules']), mondays['seconds'], mondays['first']),
                         (['also noon', 'noon', 'piles up'], 52, '2026-01-05T12:00:00Z'))

        changes = [(entry['zone'], entry['at'], entry['kind'], entry['schedule'], entry['first'], entry['policy'])
                   for entry in report['daylight_saving']]
        self.assertEqual(changes, [
            ('Europe/Berlin', '2026-03-29T03:00:00+02:00', 'gap', 'nightly', '2026-03-29T02:30:00', 'next'),
            ('Europe/Berlin', '2026-10-25T02:00:00+01:00', 'overlap', 'nightly', '2026-10-25T02:30:00', 'vixie')])
        timeline = report['timeline']
        self.assertEqual(sum(timeline['fires']), report['runs'])
        self.assertEqual(sum(schedules['nightly']['fires']), 365)
        self.assertEqual(len(timeline['fires']), len(queues['slow']['waiting_by_step']))
        self.assertEqual(report['peaks']['second']['most'], 3)

    def test_the_same_seed_gives_the_same_report_and_another_one_another(self):
        path = self.write(ALL)
        common = [path, '--from', '2026-01-01', '--for', '20d', '--json']
        first = self.run_it(*common).stdout
        self.assertEqual(first, self.run_it(*common).stdout)
        self.assertEqual(first, self.run_it(*common, '--seed', 3).stdout)
        other = json.loads(self.run_it(*common, '--seed', 4).stdout)
        self.assertEqual(other['seed'], 4)
        self.assertNotEqual(json.loads(first)['queues'], other['queues'])

    def test_the_text_says_it_all(self):
        text = self.run_it(self.write(ALL), '--from', '2026-03-01', '--for', '30d').stdout
        for expected in ('Runs begun, in columns of', 'Waiting in queues', 'piles up: +', 'Never run',
                         'leap: never: there is no such date', 'Together in one second',
                         'Europe/Berlin, 2026-03-29: nightly, 02:30 does not exist (next): runs at the first instant after the gap',
                         'begun in one minute', 'runs at once', '▇'):
            self.assertIn(expected, text)

    def test_the_html_report_stands_alone(self):
        html = self.folder / 'report.html'
        result = self.run_it(self.write(ALL), '--from', '2026-03-01', '--for', '30d', '--html', html, '--quiet')
        self.assertEqual(result.stderr, '')
        text = html.read_text()
        self.assertTrue(text.startswith('<!DOCTYPE html>') and text.endswith('</html>\n'))
        self.assertNotRegex(text, r'<script|<link|<img|src=|href=|https?:|@import|url\(')
        self.assertGreater(len(re.findall('<svg', text)), 3)
        self.assertIn('Waiting in slow', text)

    def test_the_zone_and_the_time_it_begins(self):
        report = self.report('[[schedule]]\nname = "a"\ntrigger = "@every 1h"\n',
                             '--from', '2026-03-29T00:00', '--for', '6h', '--zone', 'Europe/Berlin')
        self.assertEqual((report['from'], report['until']), ('2026-03-29T00:00:00+01:00', '2026-03-29T07:00:00+02:00'))
        self.assertEqual(report['runs'], 6)
        self.assertEqual(report['assumed_durations'], ['a'])

    def test_without_from_it_begins_now(self):
        self.assertEqual(self.report('[[schedule]]\nname = "a"\ntrigger = "@every 1h"\n', '--for', '5h')['runs'], 5)

    def test_errors_point_at_the_offending_part_and_exit_with_2(self):
        good = '[[schedule]]\nname = "a"\ntrigger = "* * * * *"\n'
        for text, arguments, part in (
                (good.replace('*/', '').replace('"* *', '"61 *'), [], 'argiope.toml:3: schedule "a": trigger: minute "61": 0 to 59'),
                (good + 'overlap = "maybe"\n', [], 'argiope.toml:4: schedule "a": overlap "maybe": skip, queue_one'),
                (good + 'colour = 1\n', [], 'argiope.toml:4: schedule "a": member "colour": a schedule has none'),
                (good + '[[queue]]\nname = "q"\nrate = "fast"\n', [], 'argiope.toml:6: queue "q": rate "fast": a number from'),
                (good + '[simulate]\nduration = "long"\n', [], 'argiope.toml:5: simulate: duration'),
                (good + 'x = [1,\n', [], 'argiope.toml:'),
                ('', [], 'no [[schedule]], nothing to simulate'),
                (good, ['--from', '2026-02-30'], '--from: time "2026-02-30": there is no such date'),
                (good, ['--for', 'ever'], '--for: duration "ever"'),
                (good, ['--for', '1ms'], '--for "1ms"'),
                (good, ['--zone', 'Mars/Olympus'], 'Mars/Olympus'),
                (good, ['--html', '/nowhere/report.html'], '--html /nowhere/report.html: No such file or directory')):
            result = self.run_it(self.write(text), *arguments, expect=2)
            self.assertEqual(result.stdout, '')
            self.assertIn(part, result.stderr)
        self.assertIn('nothing.toml', self.run_it(self.folder / 'nothing.toml', expect=2).stderr)

    def test_the_example_of_the_documentation(self):
        example = pathlib.Path(__file__).resolve().parents[2] / 'examples' / 'shop.toml'
        report = json.loads(self.run_it(example, '--from', '2026-03-01', '--for', '60d', '--json').stdout)
        self.assertEqual([never['name'] for never in report['never']], ['leap day'])
        self.assertEqual({queue['name']: queue['trend'] for queue in report['queues']}['reports'], 'piles_up')
        self.assertEqual([entry['kind'] for entry in report['daylight_saving']], ['gap'])


if __name__ == '__main__':
    unittest.main()
