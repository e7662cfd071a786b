"""Clients of beanstalkd as Debian has them, unchanged: each walks a job through all that can become of it."""
import pathlib
import shutil
import subprocess
import unittest

from daemon import Daemons

RUBY = r'''
require "beaneater"
beanstalk = Beaneater.new("127.0.0.1:#{ARGV[0]}")
tube = beanstalk.tubes["letters"]
late = tube.put("late", pri: 1, delay: 3600)
put = tube.put("hello", pri: 5, ttr: 60)
puts put[:status], late[:status]
job = tube.reserve(1)
puts job.body, job.stats.state, job.stats.pri, job.ttr
job.touch
job.release(pri: 7)
puts tube.peek(:ready).body, tube.peek(:delayed).body
job = tube.reserve(1)
job.bury
puts tube.peek(:buried).body, tube.kick(9)
tube.reserve(1).delete
puts tube.stats.current_jobs_delayed, tube.stats.current_jobs_ready
tube.pause(0)
begin
  tube.reserve(0)
rescue Beaneater::TimedOutError
  puts "nothing"
end
beanstalk.jobs.find(late[:id].to_i).delete
puts beanstalk.jobs.find(late[:id].to_i).inspect, beanstalk.stats.version
beanstalk.close
'''

PHP = r'''<?php
spl_autoload_register(fn ($name) => require '/usr/share/php/' . strtr($name, '\\', '/') . '.php');
$beanstalk = Pheanstalk\Pheanstalk::create('127.0.0.1', (int) $argv[1]);
$say = fn (...$words) => print(implode("\n", $words) . "\n");
$beanstalk->useTube('letters')->watchOnly('letters');
$late = $beanstalk->put('late', 1, 3600);
$put = $beanstalk->put('hello', 5, 0, 60);
$job = $beanstalk->reserveWithTimeout(1);
$stats = $beanstalk->statsJob($job);
$say($job->getData(), $stats->state, $stats->pri, $stats->ttr);
$beanstalk->touch($job);
$beanstalk->release($job, 7);
$say($beanstalk->peekReady()->getData(), $beanstalk->peekDelayed()->getData());
$job = $beanstalk->reserveWithTimeout(1);
$beanstalk->bury($job);
$say($beanstalk->peekBuried()->getData(), $beanstalk->kick(9));
$beanstalk->delete($beanstalk->reserveWithTimeout(1));
$say($beanstalk->statsTube('letters')['current-jobs-delayed'], $beanstalk->statsTube('letters')['current-jobs-ready']);
$beanstalk->pauseTube('letters', 0);
$say($beanstalk->reserveWithTimeout(0) === null ? 'nothing' : 'a job', implode(' ', $beanstalk->listTubesWatched()));
$beanstalk->delete($late);
try {
    $beanstalk->peek($late);
} catch (Pheanstalk\Exception\ServerException $error) {
    $say('NOT_FOUND');
}
$say(trim($beanstalk->stats()['version'], '"'));
'''


class BeanstalkdClients(Daemons):
    def walk(self, name, program, *command):
        if shutil.which(command[0]) is None:
            self.skipTest(f'{command[0]} is not installed')
        sockets = {'beanstalkd': self.listening()}
        self.supervised(sockets)
        file = self.folder / name
        file.write_text(program)
        port = sockets['beanstalkd'].getsockname()[1]
        result = subprocess.run([*command, str(file), str(port)], capture_output=True, text=True, timeout=60)
        self.assertEqual((result.returncode, result.stderr), (0, ''), result.stdout)
        return result.stdout.split('\n')[:-1]

    def test_beaneater_of_ruby(self):
        if shutil.which('ruby') and subprocess.run(['ruby', '-r', 'beaneater', '-e', ''], capture_output=True).returncode != 0:
            self.skipTest('ruby-beaneater is not installed')
        self.assertEqual(self.walk('walk.rb', RUBY, 'ruby'),
                         ['INSERTED', 'INSERTED', 'hello', 'reserved', '5', '60', 'hello', 'late', 'hello',
                          '{:status=>"KICKED", :id=>"1"}', '1', '0', 'nothing', 'nil', '1.12'])

    def test_pheanstalk_of_php(self):
        if not pathlib.Path('/usr/share/php/Pheanstalk').exists():
            self.skipTest('php-pda-pheanstalk is not installed')
        self.assertEqual(self.walk('walk.php', PHP, 'php'),
                         ['hello', 'reserved', '5', '60', 'hello', 'late', 'hello', '1', '1', '0', 'nothing', 'letters',
                          'NOT_FOUND', '1.12'])


if __name__ == '__main__':
    unittest.main()
