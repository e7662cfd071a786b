"""What a token can see and do, by scope and prefixes: every route and every command of the beanstalkd protocol against the table of
docs/serve.md. Tenant "mine" has tokens bound to its prefix; whatever is another's has "secret" in its name and in what it says."""
import http.client
import json
import pathlib
import re
import subprocess
import unittest

from beanstalkd_client import BeanstalkdClient, Gone, put_command
from daemon import Daemons
from support import ARGIOPE, PATIENCE

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCOPES = ('none', 'read', 'work', 'admin')
CONFIGURATION = '''
[serve]
pages = "pages.db"

[[notify]]
name = "ops"
command = ["false"]
'''
SECRET, MINE = 'secret', 'mine'
# All parameters and members of the API that name what may be another's: test_whatever_names_anothers_is_refused asks by each of them.
NAMING = set('queue queues project source site page who worker name schedules without_schedules id ids batch waits_for token '
             'Idempotency-Key Last-Event-ID'.split())
# The others: words, numbers, texts and settings, and what only holds those above. `key` and `unique` are of a queue; `rule` is of a project;
# `response` is for the token that has made it alone (api_projects_test.cpp).
SAYING = set('''
    after ageing_ms arrivals_per_second at_capacity atomic before beginnings burst by capacity change coalesce completion concurrency config
    conflict count data delay_ms doing due_at duration_ms error failures fill_in filter follow_ups for_ms format from function group if_failed
    job jobs keep_buried_ms keep_cancelled_ms keep_done_ms key key_burst key_concurrency key_delay_ms key_rate kinds last lease_time_ms leases
    limit max_attempts max_instances max_lease_expiries max_payload_bytes max_runs message misfire_grace most most_catch_up note order outcome
    output output_base64 overlap own pages paused paused_until payload payload_base64 payloads priority progress rate response result
    result_base64 retry_factor retry_first_ms retry_jitter retry_longest_ms retry_table_ms rule run run_again save script seed settle
    settlements state status step to trigger unique unique_policy until url version wait_ms waiting weight why word workers zone'''.split())


def table():
    """Of each request of the table: its scope, and the word in bold of what it says of a token with prefixes."""
    rows = {}
    for line in (ROOT / 'docs' / 'serve.md').read_text().splitlines():
        row = re.match(r'\| ((?:`(?:GET|POST|PUT|PATCH|DELETE) \S+` ?)+)\| `(\w+)` \| \*\*([a-z_ ]+)\*\*', line)
        for request in re.findall(r'`([^`]+)`', row[1]) if row else ():
            assert request not in rows, request
            rows[request] = (row[2], row[3])
    return rows


def project(name):
    return {'project': {'name': name, 'start': [f'http://127.0.0.1:1/{name}']}, 'rule': [{'name': 'page'}]}


class Rights(Daemons):
    def setUp(self):
        super().setUp()
        self.tokens = {None: None}
        for name, scope, prefix in (('boss', 'admin', None), ('worker', 'work', None), ('reader', 'read', None),
                                    ('mine-admin', 'admin', MINE), ('mine-work', 'work', MINE), ('mine-read', 'read', MINE),
                                    ('secret-work', 'work', SECRET), ('own-admin', 'admin', 'argiope.')):
            words = [ARGIOPE, 'token', 'add', name, '--scope', scope, '--file', self.folder / 'tokens']
            done = subprocess.run(words + (['--prefix', prefix] if prefix else []), check=True, capture_output=True, text=True)
            self.tokens[name] = done.stdout.strip()
        self.server = self.daemon(self.file(CONFIGURATION), '--tokens', self.folder / 'tokens', '--beanstalkd', '127.0.0.1:0',
                                  '--sandbox', 'basic')
        self.beanstalkd_port = int(self.server.wait_for(r'listening: beanstalkd at \S*:(\d+)')[1])

    def ask(self, token, method, path, body=None):
        headers = {'Authorization': f'Bearer {self.tokens[token]}'} if token else {}
        return self.server.ask(method, path, body, headers=headers)

    def good(self, token, method, path, body=None):
        answer = self.ask(token, method, path, body)
        self.assertLess(answer.status, 300, (method, path, answer.body))
        return json.loads(answer.body) if answer.body else None

    def two_tenants(self):
        """What both have. Ids of what is another's."""
        ids = {}
        for name in (MINE, SECRET):
            batch = self.good('boss', 'POST', '/v1/jobs', {
                'jobs': [{'queue': f'{name}.q', 'payload': name, 'id': f'{name}-part', 'delay_ms': 3_600_000}],
                'completion': {'queue': f'{name}.q', 'id': f'{name}-batch'}})
            ids[name] = {'batch': batch['completion']['id'], 'part': batch['replies'][0]['id']}
            ids[name]['job'] = self.good('boss', 'POST', '/v1/jobs', {'queue': f'{name}.q', 'payload': name, 'id': f'{name}-job'})['id']
            for schedule, queue in ((f'{name}.s', f'{name}.q'), (f'mine.to-{name}', f'{name}.q')):
                self.good('boss', 'PUT', f'/v1/schedules/{schedule}', {'trigger': '0 0 1 1 *', 'job': {'queue': queue, 'payload': name}})
            self.good('boss', 'PUT', f'/v1/projects/{name}.p', project(f'{name}.p'))
            self.good('boss', 'PATCH', f'/v1/projects/{name}.p', {'status': 'STOP'})
            self.good('boss', 'POST', '/v1/leases', {'queues': [f'{name}.none'], 'worker': f'{name}-worker'})
        self.good('boss', 'POST', '/v1/jobs', {'queue': 'secret.leased', 'lease_time_ms': 86_400_000})
        ids[SECRET]['token'] = self.good('secret-work', 'POST', '/v1/leases', {'queues': ['secret.leased'], 'worker': 'secret-busy'})['leases'][0]['token']
        return ids

    def requests(self, ids):
        """For each request of the table what asks it for another's: path and body."""
        other = ids[SECRET]
        job, name = other['job'], 'secret-job'
        schedule = {'name': 'secret.s', 'trigger': '0 0 * * *', 'job': {'queue': 'mine.q'}}
        to_secret = {'name': 'mine.new', 'trigger': '0 0 * * *', 'job': {'queue': 'secret.q'}}
        asked = {
            'GET /v1/jobs': [('/v1/jobs', None), ('/v1/jobs?limit=1', None)],
            'GET /v1/events': [('/v1/events', None)],
            'GET /v1/hosts/explain': [('/v1/hosts/explain?site=http://127.0.0.1:1', None)],
            'POST /v1/simulate': [('/v1/simulate', {'for_ms': 1000})],
            'PATCH /v1/jobs/{job}': [(f'/v1/jobs/{j}', {'priority': 9}) for j in (job, name)],
            'POST /v1/jobs/change': [('/v1/jobs/change', {'change': c, 'ids': [job]}) for c in ('cancel', 'kick', 'erase')],
            'GET /v1/history': [('/v1/history', None), ('/v1/history?queue=secret.q', None)],
            'POST /v1/jobs': [('/v1/jobs', {'queue': 'secret.q'}), ('/v1/jobs', {'jobs': [{'queue': 'secret.q'}]}),
                              ('/v1/jobs', {'jobs': [{'queue': 'mine.q'}], 'completion': {'queue': 'secret.q'}}),
                              ('/v1/jobs', {'jobs': [{'queue': 'secret.q'}], 'atomic': True}), ('/v1/jobs', {'queue': 'argiope.notify.ops'})],
            'POST /v1/leases': [('/v1/leases', {'queues': ['mine.q', 'secret.q']}), ('/v1/leases', {'queues': ['argiope.notify.ops']})],
            'POST /v1/leases/settle': [('/v1/leases/settle', {'settlements': [{'token': other['token'], 'outcome': 'done'}]})],
            'PATCH /v1/leases': [('/v1/leases', {'leases': [{'token': other['token']}]})],
            'DELETE /v1/workers/{worker}': [('/v1/workers/secret-busy', None), ('/v1/workers/secret-worker', None)],
            'POST /v1/schedules/{schedule}/run': [(f'/v1/schedules/{s}/run', None) for s in ('secret.s', 'mine.to-secret')],
            'POST /v1/schedules': [('/v1/schedules', schedule), ('/v1/schedules', to_secret), ('/v1/schedules', {'schedules': [to_secret]}),
                                   ('/v1/schedules?conflict=replace', {'name': 'mine.to-secret', 'trigger': '0 0 * * *', 'job': {'queue': 'mine.q'}}),
                                   ('/v1/schedules', {'name': 'mine.new', 'trigger': '0 0 * * *', 'job': {'queue': 'mine.q', 'function': 'command'}})],
            'PUT /v1/schedules/{schedule}': [('/v1/schedules/secret.s', schedule), ('/v1/schedules/mine.new', to_secret),
                                             ('/v1/schedules/mine.to-secret', {'trigger': '0 0 * * *', 'job': {'queue': 'mine.q'}})],
            'PATCH /v1/schedules/{schedule}': [('/v1/schedules/secret.s', {'paused': True}), ('/v1/schedules/mine.to-secret', {'paused': True}),
                                               ('/v1/schedules/mine.s', {'job': {'queue': 'secret.q'}})],
            'PUT /v1/projects/{project}': [('/v1/projects/secret.p', project('secret.p')),
                                           ('/v1/projects/mine.p', {**project('mine.p'), 'sink': [{'queue': 'secret.q'}]})],
            'PATCH /v1/projects/{project}': [('/v1/projects/secret.p', {'status': 'RUNNING'})],
            'POST /v1/projects/{project}/roll-back': [('/v1/projects/secret.p/roll-back', {'version': 1})],
            'POST /v1/projects/{project}/messages': [('/v1/projects/secret.p/messages', {'message': 1})],
            'POST /v1/projects/{project}/pages': [('/v1/projects/secret.p/pages', {'pages': [{'url': 'http://127.0.0.1:1/x'}]})],
            'POST /v1/projects/try': [('/v1/projects/try', {'project': 'secret.p', 'url': 'http://127.0.0.1:1/x'})],
            'GET /v1/projects/{project}/pages/one': [('/v1/projects/secret.p/pages/one?page=x', None)],
            'GET /v1/projects/{project}/pages/explain': [('/v1/projects/secret.p/pages/explain?page=x', None)],
            'POST /v1/next': [('/v1/next', {'trigger': '0 0 * * *'})],
            'POST /v1/session': [('/v1/session', {'token': self.tokens['mine-admin']})],
        }
        for request in table():
            method, path = request.split(' ')
            if request in asked:
                continue
            asked[request] = []
            for schedule_name in ('secret.s', 'mine.to-secret') if '{schedule}' in path else ('',):
                for job_name in (job, name) if '{job}' in path else ('',):
                    filled = path.format(job=job_name, queue='secret.q', schedule=schedule_name, project='secret.p', version=1, notify='ops')
                    asked[request].append((filled, None))
        return asked

    def beginning(self, token, path):
        """Of a stream of events: what comes until its first counters."""
        connection = http.client.HTTPConnection('127.0.0.1', self.server.port, timeout=PATIENCE)
        self.addCleanup(connection.close)
        connection.request('GET', path, headers={'Authorization': f'Bearer {self.tokens[token]}'})
        response, lines = connection.getresponse(), []
        self.assertEqual(response.status, 200)
        while not (lines and lines[-1].startswith(b'data: {"at"')):
            lines.append(response.readline())
        connection.close()
        return b''.join(lines)

    def belongings(self):
        """All that is another's, as the boss sees it, but for times and counts that pass by themselves."""
        ask = lambda path: self.good('boss', 'GET', path)
        return json.dumps([ask('/v1/jobs?queue=secret.q&payloads=1'), ask('/v1/jobs?queue=secret.leased')['jobs'][0]['state'],
                           ask('/v1/queues/secret.q')['config'], [ask(f'/v1/schedules/{s}') for s in ('secret.s', 'mine.to-secret', 'mine.s')],
                           [ask('/v1/projects/secret.p')[m] for m in ('status', 'version', 'pages')],
                           ask('/v1/projects/mine.p')['version']], sort_keys=True)

    def verdict(self, answer):
        """The status of an answer, or of its first part."""
        said = json.loads(answer.body or b'{}') if b'{' in answer.body[:1] else {}
        first = next(iter(said.get('replies') or [{}]))
        if answer.status >= 300 or 'error' not in first:
            return answer.status
        return first['error']['status']

    def test_the_table_has_every_route_with_its_scope(self):
        described = json.loads(self.ask(None, 'GET', '/v1/openapi.json').body)['paths']
        routes = {f'{method.upper()} {path}': about['x-scope'] for path, methods in described.items()
                  for method, about in methods.items() if 'x-scope' in about}
        self.assertEqual({request: scope for request, (scope, _) in table().items()}, routes)

    def test_every_route_against_the_table(self):
        ids = self.two_tenants()
        self.good('boss', 'POST', '/v1/notify/ops/test')
        self.wait_until(lambda: self.good('boss', 'GET', '/v1/queues/argiope.notify.ops')['counts']['delayed'] == 1)
        asked, before = self.requests(ids), self.belongings()
        self.assertIn(SECRET, before)
        for request, (scope, word) in table().items():
            method = request.split(' ')[0]
            for path, body in asked[request]:
                with self.subTest(request, path=path, body=body):
                    self.judge(word, method, path, body)
                    if scope in ('read', 'work', 'admin'):
                        lower = {'read': None, 'work': 'mine-read', 'admin': 'mine-work'}[scope]
                        self.assertEqual(self.ask(lower, method, path, body).status, 403 if lower else 401)
                    if scope == 'admin':
                        self.assertEqual(self.ask('worker', method, path, body).status, 403)
        self.assertEqual(self.belongings(), before)

    def parameters_and_members(self):
        """The names of all that requests say beside their paths, as the API describes itself."""
        described = json.loads(self.ask(None, 'GET', '/v1/openapi.json').body)
        def found(one):
            return described['components'][one['$ref'].split('/')[-2]][one['$ref'].split('/')[-1]] if '$ref' in one else one
        def members(schema, within=()):
            if schema.get('$ref') in within:
                return set()
            within += (schema.get('$ref', ''),)
            schema = found(schema)
            parts = [*schema.get('properties', {}).values(), *schema.get('oneOf', []), *schema.get('anyOf', []), *schema.get('allOf', [])]
            parts += [schema['items']] if 'items' in schema else []
            return set(schema.get('properties', {})).union(*(members(part, within) for part in parts))
        names = set()
        for operation in (one for methods in described['paths'].values() for one in methods.values() if isinstance(one, dict)):
            names |= {one['name'] for one in map(found, operation.get('parameters', [])) if one['in'] != 'path'}
            for content in found(operation.get('requestBody', {})).get('content', {}).values():
                names |= members(content.get('schema', {}))
        return names

    def test_every_parameter_and_member_is_known_to_name_something_or_not(self):
        self.assertEqual(self.parameters_and_members(), NAMING | SAYING)
        self.assertFalse(NAMING & SAYING)

    def test_what_is_anothers_is_answered_as_what_was_never_there(self):
        other, none = self.two_tenants()[SECRET], 999_999
        change = lambda kind: lambda n: ('POST', '/v1/jobs/change', {'change': kind, 'ids': [n], **({'priority': 1} if kind == 'set_priority' else {})})
        of_job = lambda method, rest, body=None: lambda n: (method, f'/v1/jobs/{n}{rest}', body)
        put = lambda **names: lambda n: ('POST', '/v1/jobs', {'queue': 'mine.q', **{name: as_one(n) for name, as_one in names.items()}})
        asked = [of_job('GET', ''), of_job('GET', '/explain'), of_job('GET', '/history'), of_job('GET', '/output'), of_job('GET', '/output?after=0'),
                 of_job('PATCH', '', {'priority': 1}), of_job('PATCH', '', {'delay_ms': 5}), of_job('DELETE', ''), of_job('POST', '/cancel', {'why': 'x'}),
                 of_job('POST', '/kick'), *map(change, ('cancel', 'kick', 'erase', 'set_priority'))]
        for names in ({'waits_for': lambda n: [n]}, {'waits_for': lambda n: [str(n)]}, {'batch': lambda n: n}, {'batch': str}):
            one = put(**names)
            asked += [one, lambda n, one=one: ('POST', '/v1/jobs', {'jobs': [{'queue': 'mine.q'}, one(n)[2]]}),
                      lambda n, one=one: ('POST', '/v1/jobs', {'jobs': [one(n)[2]], 'atomic': True}),
                      lambda n, one=one: ('POST', '/v1/jobs', {'jobs': [{'queue': 'mine.q'}], 'completion': one(n)[2]}),
                      lambda n, one=one: ('POST', '/v1/leases/settle', {'settlements': [
                          {'token': self.lease_mine(), 'outcome': 'done', 'follow_ups': [one(n)[2]]}]})]
        def told(number, request):
            answer = self.ask('mine-admin', *request(number))
            body = re.sub(r'"(?:instance|request_id)":"[^"]*"|"(?:token|id)":\d+', '', answer.body.decode())
            return answer.status, re.sub(rf'\b{number}\b', 'N', body)
        for request in asked:
            for number in (other['job'], other['batch']):
                with self.subTest(request(number) if 'settle' not in request(none)[1] else 'settle'):
                    self.assertEqual(told(number, request), told(none, request))
        leases = [lambda n: ('POST', '/v1/leases/settle', {'settlements': [{'token': n, 'outcome': 'done', 'follow_ups': [{'queue': 'mine.q'}]}]}),
                  lambda n: ('POST', '/v1/leases', {'queues': ['mine.none'], 'settle': [{'token': n, 'outcome': 'bury', 'error': 'x'}]}),
                  lambda n: ('PATCH', '/v1/leases', {'leases': [{'token': n, 'progress': 1}]})]
        for request in leases:
            with self.subTest(request(0)):
                self.assertEqual(told(other['token'], request), told(none, request))

    def test_whatever_names_anothers_is_refused(self):
        ids = self.two_tenants()
        other, before = ids[SECRET], self.belongings()
        self.good('boss', 'PUT', '/v1/projects/secret.hosts', {'project': {'name': 'secret.hosts', 'start': ['http://secret.test/'], 'status': 'STOP'}, 'rule': [{'name': 'page'}]})
        self.good('boss', 'POST', '/v1/projects/secret.hosts/pages', {'url': 'http://secret.test/'})
        to_secret = {'name': 'mine.new', 'trigger': '0 0 * * *', 'job': {'queue': 'secret.q'}}
        follow_up = {'settlements': [{'token': self.lease_mine(), 'outcome': 'done', 'follow_ups': [{'queue': 'secret.q'}]}]}
        jobs = [('queue', {'queue': 'secret.q'}, 403), ('batch', {'queue': 'mine.q', 'batch': other['batch']}, 404),
                ('waits_for', {'queue': 'mine.q', 'waits_for': [other['job']]}, 404), ('id', {'queue': 'mine.q', 'id': 'secret-job'}, 409)]
        page = {'url': 'http://127.0.0.1:1/x'}
        asked = [(name, 'POST', '/v1/jobs', body, status) for name, job, status in jobs
                 for body in (job, {'jobs': [job]}, {'jobs': [{'queue': 'mine.q'}], 'completion': job})]
        asked += [('queue', 'GET', f'/v1/{path}?queue={queue}', None, 403) for path in ('jobs', 'events', 'history') for queue in ('secret.q', 'secret.none')]
        asked += [
            ('queue', 'POST', '/v1/schedules', to_secret, 403),
            ('queue', 'POST', '/v1/simulate', {'schedules': [to_secret]}, 403),
            ('queue', 'POST', '/v1/leases/settle', follow_up, 403),
            ('queue', 'POST', '/v1/leases', {'queues': ['mine.none'], 'settle': follow_up['settlements']}, 403),
            ('queue', 'PUT', '/v1/projects/mine.p', {**project('mine.p'), 'sink': [{'queue': 'secret.q'}]}, 403),
            ('queues', 'POST', '/v1/leases', {'queues': ['secret.q']}, 403),
            ('queues', 'POST', '/v1/simulate', {'queues': [{'name': 'secret.q', 'workers': 1}]}, 403),
            ('schedules', 'POST', '/v1/simulate', {'schedules': [{**to_secret, 'name': 'secret.s', 'job': {'queue': 'mine.q'}}]}, 403),
            ('name', 'POST', '/v1/schedules', {'name': 'secret.new', 'trigger': '0 0 * * *', 'job': {'queue': 'mine.q'}}, 403),
            ('without_schedules', 'POST', '/v1/simulate', {'without_schedules': ['secret.s']}, 403),
            ('without_schedules', 'POST', '/v1/simulate', {'without_schedules': ['secret.none']}, 403),
            ('ids', 'POST', '/v1/jobs/change', {'change': 'kick', 'ids': [other['job']]}, 404),
            ('token', 'POST', '/v1/leases/settle', {'settlements': [{'token': other['token'], 'outcome': 'done', 'follow_ups': [{'queue': 'secret.q'}]}]}, 403),
            ('project', 'GET', '/v1/hosts?project=secret.p', None, 403),
            ('project', 'POST', '/v1/projects/try', {'project': 'secret.p', **page}, 403),
            ('source', 'POST', '/v1/projects/try', {'source': '[project]\nname = "secret.p"\nstart = "http://127.0.0.1:1/"\n[[rule]]\nname = "page"\n', **page}, 403),
            ('page', 'GET', '/v1/projects/mine.p/pages/one?page=http://secret.test/', None, 404),
            ('who', 'DELETE', '/v1/workers/secret-busy?who=secret-work', None, 404),
        ]
        for name, method, path, body, status in asked:
            with self.subTest(name, path=path, body=body):
                answer = self.ask('mine-admin', method, path, body)
                said = json.loads(answer.body)
                first = next(iter(said.get('replies') or said.get('settled') or [{}]))
                self.assertEqual(first['error']['status'] if 'error' in first else answer.status, status, answer.body)
        # These say what they say of what is not there.
        explained = [self.good('mine-admin', 'GET', f'/v1/hosts/explain?site=http://{host}/') for host in ('secret.test', 'nobody.test')]
        self.assertEqual([one['known'] for one in explained], [False, False])
        self.assertEqual(json.dumps(explained[0]).replace('secret', 'nobody'), json.dumps(explained[1]))
        self.assertEqual(self.good('mine-admin', 'GET', '/v1/hosts?filter=secret')['hosts'], [])
        self.assertEqual(self.good('mine-admin', 'PATCH', '/v1/leases', {'leases': [], 'worker': 'secret-busy'}), {'leases': []})
        key = {'Idempotency-Key': 'one'}
        for tenant in (SECRET, MINE):
            headers = {'Authorization': f'Bearer {self.tokens[tenant + "-work"]}', **key}
            self.assertEqual(self.server.ask('POST', '/v1/jobs', {'queue': f'{tenant}.keyed'}, headers).status, 201)
        self.assertEqual(self.belongings(), before)
        done = {name for name, *_ in asked} | {'site', 'worker', 'Idempotency-Key', 'Last-Event-ID'}  # that one has a test of its own
        self.assertEqual(done, NAMING)

    def test_a_stream_goes_on_from_anothers_event_and_tells_nothing_of_it(self):
        event_ids = []
        for tenant in ('secret-work', 'mine-read'):
            connection = http.client.HTTPConnection('127.0.0.1', self.server.port, timeout=PATIENCE)
            self.addCleanup(connection.close)
            last = {'Last-Event-ID': event_ids[0]} if event_ids else {}
            connection.request('GET', '/v1/events?kinds=job', headers={'Authorization': f'Bearer {self.tokens[tenant]}', **last})
            response, told = connection.getresponse(), []
            self.assertEqual(response.status, 200)
            queue = 'secret.q' if tenant == 'secret-work' else 'mine.q'
            self.good('boss', 'POST', '/v1/jobs', {'jobs': [{'queue': 'secret.q', 'payload': SECRET}, {'queue': queue}]})
            while not told or queue.encode() not in told[-1]:
                told.append(response.readline())
                if told[-1].startswith(b'id: '):
                    event_ids.append(told[-1][4:].strip().decode())
            if tenant == 'mine-read':
                self.assertNotIn(SECRET.encode(), b''.join(told))
                self.assertNotIn(b'reset', b''.join(told))

    def wait_for_counters(self):
        """Counters are taken once a second; the last may be from before there was a queue."""
        self.wait_until(lambda: 'mine.q' in self.good('boss', 'GET', '/v1/counters')['queues'])

    def judge(self, word, method, path, body):
        """Asks with a token of every scope that may: bound, it gets what the table says."""
        if path in ('/v1/events', '/v1/counters'):
            self.wait_for_counters()
        if path == '/v1/events':
            said = self.beginning('mine-read', path)
            self.assertIn(b'mine.q', said)
            return self.assertNotIn(SECRET.encode(), said)
        answer = self.ask('mine-admin', method, path, body)
        if word == 'its own':
            self.assertEqual(answer.status, 200, answer.body)
            self.assertNotIn(SECRET.encode(), answer.body)
            self.assertNotIn(b'argiope.notify', answer.body)
            if 'explain' not in path and 'hosts' not in path:
                self.assertIn(MINE.encode(), answer.body)
        elif word == 'not_found' and path == '/v1/leases':
            self.assertTrue(json.loads(answer.body)['leases'][0]['lease_lost'])
        elif word == 'not_found' and path == '/v1/leases/settle':
            self.assertEqual(json.loads(answer.body)['replies'][0], {'token': body['settlements'][0]['token'], 'outcome': 'lease_lost'})
        elif word in ('not_found', 'forbidden'):
            self.assertEqual(self.verdict(answer), {'not_found': 404, 'forbidden': 403}[word], answer.body)
            self.assertNotIn(b'"payload":"secret', answer.body)
        else:
            self.assertLess(answer.status, 300, answer.body)

    def own_requests(self):
        """For each request of the table what asks it for the tenant's own: path and body. A job for each that changes one."""
        new_job = lambda: self.good('boss', 'POST', '/v1/jobs', {'queue': 'mine.q', 'delay_ms': 3_600_000})['id']
        lease = self.lease_mine
        schedule = {'trigger': '0 0 * * *', 'job': {'queue': 'mine.q'}}
        ended = self.good('mine-work', 'POST', '/v1/leases/settle', {'settlements': [{'token': lease(), 'outcome': 'done', 'result': 'x'}]})
        self.assertEqual(ended['replies'][0]['outcome'], 'ok')
        done = self.good('boss', 'GET', '/v1/jobs?queue=mine.work')['jobs'][0]['id']
        page = 'http://127.0.0.1:1/own'
        self.good('boss', 'POST', '/v1/projects/mine.p/pages', {'url': page})
        asked = {
            'GET /v1/hosts/explain': ('/v1/hosts/explain?site=http://127.0.0.1:1', None),
            'POST /v1/simulate': ('/v1/simulate', {'for_ms': 1000}),
            'PATCH /v1/jobs/{job}': (f'/v1/jobs/{new_job()}', {'priority': 9}),
            'POST /v1/jobs/change': ('/v1/jobs/change', {'change': 'cancel', 'ids': [new_job()]}),
            'GET /v1/jobs/{job}/output': (f'/v1/jobs/{done}/output', None),
            'GET /v1/history': ('/v1/history?queue=mine.q', None),
            'POST /v1/jobs': ('/v1/jobs', {'jobs': [{'queue': 'mine.new'}], 'completion': {'queue': 'mine.q'}}),
            'POST /v1/leases': ('/v1/leases', {'queues': ['mine.q'], 'worker': 'mine-worker'}),
            'POST /v1/leases/settle': ('/v1/leases/settle', {'settlements': [{'token': lease(), 'outcome': 'done', 'follow_ups': [{'queue': 'mine.q'}]}]}),
            'PATCH /v1/leases': ('/v1/leases', {'leases': [{'token': lease()}]}),
            'DELETE /v1/workers/{worker}': ('/v1/workers/w', None),
            'POST /v1/schedules': ('/v1/schedules', {'name': 'mine.more', **schedule}),
            'PUT /v1/schedules/{schedule}': ('/v1/schedules/mine.new', schedule),
            'PATCH /v1/schedules/{schedule}': ('/v1/schedules/mine.s', {'job': {'queue': 'mine.other'}}),
            'PUT /v1/projects/{project}': ('/v1/projects/mine.more', {**project('mine.more'), 'sink': [{'queue': 'mine.q'}]}),
            'PATCH /v1/projects/{project}': ('/v1/projects/mine.p', {'status': 'RUNNING'}),
            'POST /v1/projects/{project}/roll-back': ('/v1/projects/mine.p/roll-back', {'version': 1}),
            'POST /v1/projects/{project}/pages': ('/v1/projects/mine.p/pages', {'pages': [{'url': 'http://127.0.0.1:1/x'}]}),
            'POST /v1/projects/{project}/messages': ('/v1/projects/mine.p/messages', {'message': 1}),
            'DELETE /v1/schedules/{schedule}': ('/v1/schedules/mine.new', None),
            'DELETE /v1/projects/{project}': ('/v1/projects/mine.more', None),
            'POST /v1/projects/try': ('/v1/projects/try', {'project': 'mine.p', 'url': 'http://127.0.0.1:1/x'}),
            'GET /v1/projects/{project}/pages/one': (f'/v1/projects/mine.p/pages/one?page={page}', None),
            'GET /v1/projects/{project}/pages/explain': (f'/v1/projects/mine.p/pages/explain?page={page}', None),
            'POST /v1/next': ('/v1/next', {'trigger': '0 0 * * *'}),
            'POST /v1/session': ('/v1/session', {'token': self.tokens['mine-admin']}),
        }
        for request in table():
            path = request.split(' ')[1]
            if request not in asked:
                job = new_job() if '{job}' in path else ''
                asked[request] = (path.format(job=job, queue='mine.q', schedule='mine.s', project='mine.p', version=1, notify='ops'), None)
        return asked

    def test_a_bound_token_may_do_with_its_own_what_the_table_says(self):
        self.two_tenants()
        before, asked = self.belongings(), self.own_requests()
        # Those of all are nobody's own. This project has no script for messages and was not deleted, and this schedule has not run.
        of_all = {request for request, (_, word) in table().items() if word == 'forbidden' and re.search(r'/v1/(notify|audit)', request)}
        self.good('boss', 'PUT', '/v1/queues/mine.empty', {})
        asked['DELETE /v1/queues/{queue}'] = ('/v1/queues/mine.empty', None)
        others = {'POST /v1/projects/{project}/messages': 400, 'POST /v1/projects/{project}/restore': 409,
                  'GET /v1/schedules/{schedule}/output': 404}
        # What ends a thing comes last.
        for request in sorted(set(table()) - of_all, key=lambda one: (one.startswith('DELETE'), one)):
            (scope, _), (path, body) = table()[request], asked[request]
            with self.subTest(request, path=path, body=body):
                token = 'mine-read' if scope == 'none' else f'mine-{scope}'
                if path == '/v1/events':
                    self.wait_for_counters()
                    self.assertIn(b'mine.q', self.beginning(token, path))
                    continue
                answer = self.ask(token, request.split(' ')[0], path, body)
                verdict = self.verdict(answer)
                self.assertTrue(verdict < 300 or verdict == others.get(request), (verdict, answer.body))
                if path == '/v1/leases' and body and 'leases' in body:
                    self.assertNotIn('lease_lost', json.loads(answer.body)['leases'][0])
        unchanged = lambda text: [json.dumps(json.loads(text)[part], sort_keys=True) for part in (0, 1, 2, 4)]
        self.assertEqual(unchanged(self.belongings()), unchanged(before))

    def test_a_stream_tells_of_no_schedule_whose_jobs_go_elsewhere(self):
        connection = http.client.HTTPConnection('127.0.0.1', self.server.port, timeout=PATIENCE)
        self.addCleanup(connection.close)
        connection.request('GET', '/v1/events?kinds=schedule', headers={'Authorization': f'Bearer {self.tokens["mine-read"]}'})
        response = connection.getresponse()
        self.assertEqual(response.status, 200)
        for schedule, queue in (('mine.to-secret', 'secret.q'), ('mine.moved', 'mine.q'), ('mine.s', 'mine.q')):
            self.good('boss', 'PUT', f'/v1/schedules/{schedule}', {'trigger': '@every 1h', 'job': {'queue': queue}})
        self.good('boss', 'POST', '/v1/schedules/mine.to-secret/pause', {})
        for schedule in ('mine.to-secret', 'mine.moved'):
            self.good('boss', 'PATCH', f'/v1/schedules/{schedule}', {'job': {'queue': 'secret.q'}})
            self.good('boss', 'DELETE', f'/v1/schedules/{schedule}')
        self.good('boss', 'DELETE', '/v1/schedules/mine.s')
        told = []
        while told[-1:] != [('schedule_removed', 'mine.s')]:
            line = response.readline()
            if line.startswith(b'data: '):
                event = json.loads(line[6:])
                told.append((event['event'], event['name']))
        self.assertEqual(told, [('schedule_added', 'mine.moved'), ('schedule_added', 'mine.s'), ('schedule_removed', 'mine.s')])

    def test_a_script_sends_messages_to_its_tenants_projects_alone(self):
        self.folder.chmod(0o755)  # started by root, a script runs as a user without rights
        script = ('import json, sys\n'
                  'def say(**words):\n    print(json.dumps(words), flush=True)\n'
                  'for line in sys.stdin.buffer:\n    call = json.loads(line)\n'
                  '    if call["type"] == "describe":\n'
                  '        say(type="described", protocol=1, on={"start": "on_start", "message": "on_message"})\n'
                  '    elif call["type"] == "page":\n        sys.stdin.buffer.read(call.get("body", 0))\n')
        hears = script + '        say(type="done", id=call["id"], pages=[], results=[{"value": call["page"]["context"]}])\n'
        sends = script + ('        to = ["secret.hears", "no-such-project", "mine.hears"]\n'
                          '        say(type="done", id=call["id"], pages=[], results=[], messages=[{"project": p, "message": 7} for p in to])\n')
        for putter, name, script in (('boss', 'secret.hears', hears), ('boss', 'mine.hears', hears), ('mine-admin', 'mine.sends', sends)):
            source = f'[project]\nname = "{name}"\nprocessor = ["python3", "script.py"]\n'
            self.good(putter, 'PUT', f'/v1/projects/{name}', {'source': source, 'script': script})
        self.good('mine-admin', 'POST', '/v1/projects/mine.sends/start')
        results = lambda name: self.good('boss', 'GET', f'/v1/projects/{name}/results')['results']
        self.wait_until(lambda: results('mine.hears'), 'its own project was told nothing')
        self.assertEqual(results('mine.hears')[0]['value'], {'project': 'mine.sends', 'message': 7})
        self.assertEqual(self.good('boss', 'GET', '/v1/projects/secret.hears')['pages'], 0)
        left_out = [re.sub('secret.hears|no-such-project', 'X', line) for line in self.server.log if 'a message was left out' in line]
        self.assertEqual(len(left_out), 2, left_out)
        self.assertEqual(len({line.split('a message')[1] for line in left_out}), 1, left_out)

    def test_what_a_job_names_is_its_tenants(self):
        ids = self.two_tenants()
        before = self.belongings()
        other = ids[SECRET]
        for reference in ({'batch': other['batch']}, {'batch': 'secret-batch'}, {'batch': 'no-such-batch'}, {'batch': 999_999},
                          {'waits_for': [other['job']]}, {'waits_for': ['secret-job']}, {'waits_for': [ids[MINE]['job'], other['job']]}):
            job = {'queue': 'mine.q', **reference}
            answers = [self.ask('mine-work', 'POST', '/v1/jobs', body) for body in (
                job, {'jobs': [job]}, {'jobs': [job], 'atomic': True}, {'jobs': [job], 'completion': {'queue': 'mine.q'}})]
            answers.append(self.ask('mine-work', 'POST', '/v1/jobs', {'jobs': [{'queue': 'mine.q'}], 'completion': job})
                           if not isinstance(reference.get('batch', (reference.get('waits_for') or [0])[-1]), str) else answers[0])
            self.assertEqual([self.verdict(answer) for answer in answers], [404] * 5, (reference, [a.body for a in answers]))
            if not any(isinstance(one, str) for one in [reference.get('batch', 0), *reference.get('waits_for', [])]):
                lease = self.lease_mine()
                reply = self.good('mine-work', 'POST', '/v1/leases/settle',
                                  {'settlements': [{'token': lease, 'outcome': 'done', 'follow_ups': [job]}]})['replies'][0]
                self.assertIn('error', reply, reference)
        for taken in ('secret-job', other['job']):
            job = {'queue': 'mine.q', 'id': taken, 'payload': 'not to be lost'}
            self.assertEqual(self.ask('mine-work', 'POST', '/v1/jobs', job).status, 409)
            self.assertEqual(self.good('mine-work', 'POST', '/v1/jobs', {'jobs': [job]})['replies'][0]['error']['status'], 409)
            for body, headers, pointer in ((job, {'Idempotency-Key': f'one {taken}'}, '/id'),
                                           ({'jobs': [{'queue': 'mine.q'}, job], 'atomic': True}, {}, '/jobs/1/id'),
                                           ({'jobs': [{'queue': 'mine.q'}], 'completion': job}, {}, '/completion/id')):
                answer = self.server.ask('POST', '/v1/jobs', body, {'Authorization': f'Bearer {self.tokens["mine-work"]}', **headers})
                problem = json.loads(answer.body)
                self.assertEqual((answer.status, problem['type'], problem['errors'][0]['pointer']),
                                 (409, 'urn:argiope:problem:conflict', pointer), answer.body)
            reply = self.good('mine-work', 'POST', '/v1/leases/settle', {'settlements': [
                {'token': self.lease_mine(), 'outcome': 'done', 'follow_ups': [{'queue': 'mine.q'}, job]}]})['replies'][0]
            self.assertEqual((reply['error']['status'], reply['error']['type']), (409, 'urn:argiope:problem:conflict'), reply)
            self.assertEqual(reply['error']['errors'][0]['pointer'], '/settlements/0/follow_ups/1/id')
        self.assertEqual(self.belongings(), before)
        # Its own it may name.
        mine = ids[MINE]
        self.assertEqual(self.ask('mine-work', 'POST', '/v1/jobs', {'queue': 'mine.q', 'batch': 'mine-batch', 'waits_for': [mine['job']]}).status, 201)
        self.assertEqual(self.good('mine-work', 'POST', '/v1/jobs', {'queue': 'mine.q', 'id': 'mine-job'})['outcome'], 'kept')

    def lease_mine(self):
        self.good('mine-work', 'POST', '/v1/jobs', {'queue': 'mine.work'})
        return self.good('mine-work', 'POST', '/v1/leases', {'queues': ['mine.work'], 'worker': 'w'})['leases'][0]['token']

    def test_what_is_told_of_another_tells_whether_it_is_there(self):
        self.two_tenants()
        for path in ('/v1/jobs/{}', '/v1/jobs/{}/explain', '/v1/jobs/{}/output'):
            told = [json.loads(self.ask('mine-read', 'GET', path.format(job)).body) for job in ('secret-job', 'nothing-job')]
            for one in told:
                one.pop('request_id')
            self.assertEqual(json.dumps(told[0]).replace('secret-job', 'nothing-job'), json.dumps(told[1]))

    def test_a_cancelled_dependant_is_told_of_in_its_own_queue(self):
        up = self.good('boss', 'POST', '/v1/jobs', {'queue': 'secret.up'})['id']
        down = self.good('boss', 'POST', '/v1/jobs', {'queue': 'mine.down', 'waits_for': [up]})['id']
        self.good('boss', 'POST', f'/v1/jobs/{up}/cancel')
        self.assertEqual(self.good('boss', 'GET', f'/v1/jobs/{down}')['state'], 'cancelled')
        metrics = self.ask('mine-read', 'GET', '/metrics').body.decode()
        self.assertIn('argiope_jobs_cancelled_total{queue="mine.down"} 1', metrics)
        self.assertNotIn(SECRET, metrics)
        self.assertIn('argiope_jobs_cancelled_total{queue="secret.up"} 1', self.ask('boss', 'GET', '/metrics').body.decode())

    def test_a_page_that_ends_early_says_where_it_goes_on(self):
        for _ in range(11):
            self.good('boss', 'POST', '/v1/jobs', {'jobs': [{'queue': 'secret.q'}] * 10_000})
        mine = self.good('boss', 'POST', '/v1/jobs', {'queue': 'mine.q'})['id']
        found, after = [], 0
        while after is not None:
            page = self.good('mine-read', 'GET', f'/v1/jobs?after={after}')
            found, after = found + [job['id'] for job in page['jobs']], page['next']
        self.assertEqual(found, [mine])

    def test_the_daemons_own_queues_are_for_looks(self):
        job = self.good('boss', 'POST', '/v1/notify/ops/test')['job']
        self.wait_until(lambda: self.good('boss', 'GET', f'/v1/jobs/{job}')['state'] == 'delayed')
        for reader in ('reader', 'worker', 'boss'):
            self.assertEqual(self.good(reader, 'GET', f'/v1/jobs/{job}')['queue'], 'argiope.notify.ops')
            self.assertEqual(self.good(reader, 'GET', '/v1/jobs?queue=argiope.notify.ops')['jobs'][0]['id'], job)
        for stranger in ('own-admin', 'mine-admin'):
            self.assertEqual(self.ask(stranger, 'GET', f'/v1/jobs/{job}').status, 404)
            self.assertEqual(self.ask(stranger, 'GET', '/v1/jobs?queue=argiope.notify.ops').status, 403)
            self.assertEqual(self.good(stranger, 'GET', '/v1/queues')['queues'], [])
        own, forged = 'argiope.notify.ops', {'queue': 'argiope.notify.ops', 'payload': 'To: all@example.org\n\nforged\n'}
        for putter in ('boss', 'worker', 'own-admin'):
            for method, path, body in (
                    ('POST', '/v1/jobs', forged), ('POST', '/v1/jobs', {'jobs': [forged]}), ('POST', '/v1/jobs', {'jobs': [forged], 'atomic': True}),
                    ('POST', '/v1/jobs', {'jobs': [{'queue': 'argiope.notify.ops'}], 'completion': forged}),
                    ('POST', '/v1/jobs', {'jobs': [], 'completion': forged}), ('POST', '/v1/leases', {'queues': [own], 'worker': 'w'})):
                self.assertEqual(self.verdict(self.ask(putter, method, path, body)), 403, (putter, path, body))
        for admin in ('boss', 'own-admin'):
            schedule = {'name': 'argiope.s', 'trigger': '0 0 * * *', 'job': {'queue': own, 'payload': 'x'}}
            self.assertEqual(self.ask(admin, 'POST', '/v1/schedules', schedule).status, 403)
            self.assertEqual(self.ask(admin, 'PUT', '/v1/projects/argiope.p', {**project('argiope.p'), 'sink': [{'queue': own}]}).status, 403)
        self.good('boss', 'POST', '/v1/jobs', {'queue': 'w'})
        token = self.good('worker', 'POST', '/v1/leases', {'queues': ['w'], 'worker': 'w'})['leases'][0]['token']
        for ended in ({'follow_ups': [forged]}, {'follow_ups': [{'queue': 'w', 'batch': job}]}):
            reply = self.good('worker', 'POST', '/v1/leases/settle', {'settlements': [{'token': token, 'outcome': 'done', **ended}]})
            self.assertIn('error', reply['replies'][0], ended)
        for method, path in (('POST', 'cancel'), ('POST', 'kick'), ('DELETE', ''), ('PATCH', '')):
            body = {'priority': 1} if method == 'PATCH' else None
            self.assertEqual(self.ask('worker', method, f'/v1/jobs/{job}/{path}'.rstrip('/'), body).status, 404)
        for change in ('cancel', 'kick', 'erase'):
            reply = self.good('worker', 'POST', '/v1/jobs/change', {'change': change, 'ids': [job]})['replies'][0]
            self.assertEqual(reply['error']['status'], 404)
        self.assertEqual(self.ask('worker', 'POST', f'/v1/queues/{own}/kick', {}).status, 403)
        self.assertEqual(self.ask('worker', 'POST', '/v1/jobs', {'queue': 'w', 'batch': job}).status, 404)
        self.assertEqual(len(self.good('boss', 'GET', f'/v1/jobs?queue={own}')['jobs']), 1)
        self.good('boss', 'POST', f'/v1/queues/{own}/pause')
        self.assertIn(self.ask('boss', 'POST', f'/v1/jobs/{job}/kick').status, (200, 409))  # it may be ready just now
        self.good('boss', 'DELETE', f'/v1/jobs/{job}')
        self.assertEqual(self.good('boss', 'GET', f'/v1/jobs?queue={own}')['jobs'], [])

    def verbs(self):
        """All that the parser knows."""
        text = (ROOT / 'src' / 'serve' / 'beanstalkd' / 'beanstalkd_parser.cpp').read_text()
        words = re.search(r'kWords = \{\{(.*?)\}\};', text, re.S)[1]
        return set(re.findall(r'\{"([a-z-]+) ?", Shape::', words))

    def test_every_command_of_the_beanstalkd_protocol(self):
        own = 'argiope.notify.ops'
        job = self.good('boss', 'POST', '/v1/notify/ops/test')['job']
        self.wait_until(lambda: self.good('boss', 'GET', f'/v1/jobs/{job}')['state'] == 'delayed')
        client = BeanstalkdClient(self.beanstalkd_port)
        self.addCleanup(client.close)
        bad, none = ['BAD_FORMAT'], ['NOT_FOUND']
        answers = {
            'list-tube-used': ['USING', 'default'], f'use {own}': bad, f'watch {own}': bad, f'ignore {own}': bad, 'use argiope.': bad,
            f'stats-tube {own}': bad, f'pause-tube {own} 60': bad, f'peek {job}': none, f'delete {job}': none, f'kick-job {job}': none,
            f'stats-job {job}': none, f'reserve-job {job}': none, f'release {job} 0 0': none, f'bury {job} 0': none, f'touch {job}': none,
            'peek-ready': none, 'peek-delayed': none, 'peek-buried': none, 'reserve-with-timeout 0': ['TIMED_OUT'], 'kick 100': ['KICKED', '0'],
        }
        told_below = {'list-tubes', 'list-tubes-watched', 'stats', 'put', 'reserve', 'quit'}
        self.assertEqual({command.split(' ')[0] for command in answers} | told_below, self.verbs())
        for command, answer in answers.items():
            self.assertEqual(client.ask(command), answer, command)
        for command in ('list-tubes', 'list-tubes-watched', 'stats'):
            text = client.ask(command)[-1]
            self.assertNotIn('argiope.', text, command)
        self.assertIn('current-jobs-delayed: 0', client.ask('stats')[-1])
        self.assertEqual(client.ask(put_command('forged'))[0], 'INSERTED')
        self.assertEqual(client.ask('reserve')[-1], 'forged')
        self.assertEqual(self.good('boss', 'GET', f'/v1/jobs?queue={own}')['jobs'][0]['id'], job)
        client.send('quit')
        with self.assertRaises(Gone):
            client.answer()

    def test_a_web_page_is_no_client_of_the_beanstalkd_protocol(self):
        page = BeanstalkdClient(self.beanstalkd_port)
        self.addCleanup(page.close)
        page.send(b'POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n\r\n', 'use cmd', put_command('hello'), 'quit')
        try:
            self.assertEqual(page.answer(), ['UNKNOWN_COMMAND'])
            self.assertRaises(Gone, page.answer)
        except ConnectionResetError:
            pass  # what was never read is thrown away with the connection
        client = BeanstalkdClient(self.beanstalkd_port)
        self.addCleanup(client.close)
        self.assertIn('total-jobs: 0', client.ask('stats')[-1])


if __name__ == '__main__':
    unittest.main()
