//! The steps of bench/runtime.cpp on tokio's runtime of one thread; prints `name value` lines.  runtime-tokio [SCALE]
//!
//! Tokio's channels count no unfinished items, so the queues do without task_done, and have one receiver: between many
//! consumers stands async-channel. An awaited future is compiled into the one that awaits it, so there is no nested
//! await to measure.
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, Notify};
use tokio::task::{spawn, yield_now, JoinHandle};
use tokio::time::{sleep, Sleep};

const ROUNDS: usize = 5;
const PARKED: usize = 100_000;
const OTHER_TIMERS: usize = 100_000;

/// Nanoseconds for each of `operations` that the future `run` makes performs.
async fn time_each<Run, Done>(operations: usize, mut run: Run) -> f64
where
    Run: FnMut() -> Done,
    Done: Future<Output = ()>,
{
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        run().await;
        rounds.push(start.elapsed().as_nanos() as f64 / operations as f64);
    }
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

async fn join(tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        task.await.unwrap();
    }
}

async fn measure_yield(tasks: usize, total: usize) -> f64 {
    let times = total / tasks;
    time_each(times * tasks, || async move {
        let mut running = Vec::new();
        for _ in 0..tasks {
            running.push(spawn(async move {
                for _ in 0..times {
                    yield_now().await;
                }
            }));
        }
        join(running).await;
    })
    .await
}

async fn give(value: i32) -> i32 {
    value
}

async fn measure_spawn(times: usize) -> f64 {
    time_each(times, || async move {
        for _ in 0..times {
            spawn(give(1)).await.unwrap();
        }
    })
    .await
}

async fn measure_queue(size: usize, items: usize) -> f64 {
    time_each(items, || async move {
        let (sender, mut receiver) = mpsc::channel(size);
        let producer = spawn(async move {
            for i in 0..items {
                sender.send(i).await.unwrap();
            }
        });
        let consumer = spawn(async move {
            for _ in 0..items {
                receiver.recv().await.unwrap();
            }
        });
        join(vec![producer, consumer]).await;
    })
    .await
}

async fn measure_queue_of_many(size: usize, pairs: usize, total: usize) -> f64 {
    let items = total / pairs;
    time_each(items * pairs, || async move {
        let (sender, receiver) = async_channel::bounded(size);
        let mut tasks = Vec::new();
        for _ in 0..pairs {
            let (sender, receiver) = (sender.clone(), receiver.clone());
            tasks.push(spawn(async move {
                for i in 0..items {
                    sender.send(i).await.unwrap();
                }
            }));
            tasks.push(spawn(async move {
                for _ in 0..items {
                    receiver.recv().await.unwrap();
                }
            }));
        }
        join(tasks).await;
    })
    .await
}

fn spread(i: usize) -> Duration {
    Duration::from_millis((60_000 + i * 7919 % 120_000) as u64)
}

/// A timer is armed by its first poll; this does that and no more.
struct Arm<'a>(Pin<&'a mut Sleep>);
impl Future for Arm<'_> {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        assert!(self.0.as_mut().poll(context).is_pending());
        Poll::Ready(())
    }
}

async fn measure_timers(times: usize) -> f64 {
    let mut others = Vec::new();
    for i in 0..OTHER_TIMERS {
        let mut timer = Box::pin(sleep(spread(i)));
        Arm(timer.as_mut()).await;
        others.push(timer);
    }
    time_each(times, || async move {
        for i in 0..times {
            let timer = sleep(spread(i));
            tokio::pin!(timer);
            Arm(timer).await;
        }
    })
    .await
}

fn resident_bytes() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: f64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096.0
}

async fn measure_memory() -> f64 {
    let event = Arc::new(Notify::new());
    let mut tasks = Vec::new();
    let before = resident_bytes();
    for _ in 0..PARKED {
        let event = event.clone();
        tasks.push(spawn(async move { event.notified().await }));
    }
    yield_now().await;
    let after = resident_bytes();
    event.notify_waiters();
    join(tasks).await;
    (after - before) / PARKED as f64
}

async fn measure(scale: f64) {
    let scaled = |count: usize| ((count as f64 * scale) as usize).max(1);
    let show = |name: &str, value: f64| println!("{name} {value:.2}");
    let (yields, others) = (scaled(4_000_000), scaled(1_000_000));
    show(
        "memory of a parked task, 100,000 parked",
        measure_memory().await,
    );
    show("yield, 1 task", measure_yield(1, yields).await);
    show("yield, 1000 tasks", measure_yield(1000, yields).await);
    show("spawn and join", measure_spawn(others).await);
    show(
        "Queue(1024) 1 to 1, with task_done",
        measure_queue(1024, others).await,
    );
    show("Queue(1) 1 to 1", measure_queue(1, others).await);
    show(
        "Queue(1024) 100 to 100",
        measure_queue_of_many(1024, 100, others).await,
    );
    show(
        "timers arm and cancel, 100,000 armed",
        measure_timers(others).await,
    );
}

fn main() {
    let scale = std::env::args()
        .nth(1)
        .map_or(1.0, |text| text.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    // In a task of its own, as on the other runtimes.
    runtime.block_on(async move { spawn(measure(scale)).await.unwrap() });
}
