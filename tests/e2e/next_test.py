"""`argiope next` as a contract: its JSON line, its exit status, and what it tells a reader about daylight saving."""
import datetime
import json
import subprocess
import unittest

from support import ARGIOPE, PATIENCE


def run(*arguments):
    return subprocess.run([ARGIOPE, 'next', *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE)


class Json(unittest.TestCase):
    def answer(self, *arguments, expect=0):
        result = run(*arguments, '--json')
        self.assertEqual(result.returncode, expect, result.stdout + result.stderr)
        self.assertEqual(result.stdout.count('\n'), 1)
        return json.loads(result.stdout)

    def times(self, *arguments):
        answer = self.answer(*arguments)
        self.assertIs(answer['valid'], True)
        return answer['next']

    def test_gives_the_next_times_with_the_zones_offset(self):
        self.assertEqual(self.times('0 5 * * *', '--zone', 'Europe/Berlin', '--after', '2026-03-27T12:00:00Z', '--count', 3),
                         ['2026-03-28T05:00:00+01:00', '2026-03-29T05:00:00+02:00', '2026-03-30T05:00:00+02:00'])

    def test_gives_fewer_when_it_ends_and_none_when_it_never_comes(self):
        self.assertEqual(self.times('0 0 0 1 1 * 2027', '--after', '2026-01-01T00:00:00Z', '--count', 9),
                         ['2027-01-01T00:00:00Z'])
        self.assertEqual(self.times('0 0 30 2 *'), [])

    def test_an_interval_begins_at_the_time_asked_about(self):
        self.assertEqual(self.times('@every 90s', '--after', '2026-01-01T00:00:07Z', '--count', 2),
                         ['2026-01-01T00:01:37Z', '2026-01-01T00:03:07Z'])

    def test_takes_every_dialect(self):
        after = ['--after', '2026-01-01T00:00:00Z', '--count', 1]
        for dialect, expression, expected in (
                ('argiope', '0 0 * * 5#3', '2026-01-16T00:00:00Z'),
                ('vixie', '0 12 13 * 5', '2026-01-02T12:00:00Z'),
                ('quartz', '0 0 12 ? * 2', '2026-01-05T12:00:00Z'),
                ('apscheduler', "day='last fri', hour=5", '2026-01-30T05:00:00Z'),
                ('apscheduler', '0 12 * * 0', '2026-01-05T12:00:00Z'),
                ('systemd', 'Mon *-*-* 12:00 Europe/Berlin', '2026-01-05T12:00:00+01:00')):
            self.assertEqual(self.times(expression, '--dialect', dialect, *after), [expected], expression)

    def test_policies_decide_about_skipped_and_doubled_times(self):
        spring = ['30 2 * * *', '--zone', 'Europe/Berlin', '--after', '2026-03-28T12:00:00Z', '--count', 1]
        for policy, expected in (('next', '2026-03-29T03:00:00+02:00'), ('shift', '2026-03-29T03:30:00+02:00'),
                                 ('skip', '2026-03-30T02:30:00+02:00')):
            self.assertEqual(self.times(*spring, '--dst-gap', policy), [expected])
        autumn = ['30 2 * * *', '--zone', 'Europe/Berlin', '--after', '2026-10-24T12:00:00Z', '--count', 2]
        once, again, later = '2026-10-25T02:30:00+02:00', '2026-10-25T02:30:00+01:00', '2026-10-26T02:30:00+01:00'
        for policy, expected in (('vixie', [once, later]), ('first', [once, later]), ('second', [again, later]),
                                 ('both', [once, again])):
            self.assertEqual(self.times(*autumn, '--dst-overlap', policy), expected)

    def test_days_may_have_to_satisfy_both_fields(self):
        both = ['0 0 13 * fri', '--after', '2026-01-01T00:00:00Z', '--count', 1]
        self.assertEqual(self.times(*both), ['2026-01-02T00:00:00Z'])
        self.assertEqual(self.times(*both, '--dom-dow', 'or'), ['2026-01-02T00:00:00Z'])
        self.assertEqual(self.times(*both, '--dom-dow', 'and'), ['2026-02-13T00:00:00Z'])

    def test_bad_input_exits_with_2_and_points_at_the_part(self):
        for arguments, part in ((['61 * * * *'], 'minute "61": 0 to 59'), (['* * 32 * *'], 'day-of-month "32"'),
                                ([''], 'expression ""'), (['-1 * * * *'], 'minute "-1"'),
                                (['* * * * *', '--zone', 'Mars/Olympus'], 'Mars/Olympus'),
                                (['* * * * *', '--after', '2026-02-30'], '2026-02-30'),
                                (['* * * * *', '--dialect', 'kron'], 'dialect "kron": argiope, vixie'),
                                (['* * * * *', '--dst-gap', 'jump'], 'dst_gap "jump": next, shift or skip'),
                                (['@every 5 parsecs'], '5 parsecs'), (['{"type":"cron"'], 'JSON')):
            answer = self.answer(*arguments, expect=2)
            self.assertEqual(set(answer), {'valid', 'error'}, arguments)
            self.assertIs(answer['valid'], False)
            self.assertIn(part, answer['error'])
            result = run(*arguments)
            self.assertEqual((result.returncode, result.stdout), (2, ''))
            self.assertIn(part, result.stderr)


class Table(unittest.TestCase):
    def test_shows_weekday_time_and_how_long_from_now(self):
        rows = run('@hourly', '--count', 2).stdout.splitlines()
        self.assertEqual(len(rows), 2)
        self.assertRegex(rows[0], r'^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \S+T\d\d:00:00Z UTC +(in \d+(d|h|m|s)\w*|now)')
        weekday, time = rows[1].split()[:2]
        self.assertEqual(datetime.datetime.fromisoformat(time[:-1]).strftime('%a'), weekday)

    def test_says_what_daylight_saving_does(self):
        berlin = ['--zone', 'Europe/Berlin', '--count', 2]
        self.assertIn('moved from 02:30', run('30 2 * * *', *berlin, '--after', '2026-03-28T12:00:00Z').stdout)
        self.assertIn('Sun 2026-03-29 02:30: skipped',
                      run('30 2 * * *', *berlin, '--after', '2026-03-28T12:00:00Z', '--dst-gap', 'skip').stdout)
        self.assertIn('the first and the only one used', run('30 2 * * *', *berlin, '--after', '2026-10-24T12:00:00Z').stdout)
        self.assertRegex(run('0,30 * * * *', *berlin, '--after', '2026-10-25T00:15:00Z').stdout,
                         r'twice; this is the first\)\n.*twice; this is the second\)')

    def test_says_that_a_date_does_not_exist(self):
        self.assertIn('never', run('0 0 31 2 *').stdout)


if __name__ == '__main__':
    unittest.main()
