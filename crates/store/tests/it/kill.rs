//! Durability across `kill -9`: a process that commits all the time is killed, and every answered batch must be stored.
//! Invariant: the parent counts only whole lines, each of which the child wrote after a `commit` had returned.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base::TenantId;
use ports::Store;
use ports::store::{Batch, Expect, Key, Range, Table};
use store::sqlite::{FILE_NAME, SqliteStore};

/// Environment variables that only the parent sets: the data folder, and a name for this round.
const FOLDER: &str = "TOKAMAK_KILL_TEST_FOLDER";
const ROUND: &str = "TOKAMAK_KILL_TEST_ROUND";
const ROUNDS: usize = 10;
const TASKS: usize = 8;

fn key(table: Table, id: &str) -> Key {
    Key::new(&TenantId::local(), table, id)
}

/// The body of the process that is killed. It is a test function so that the parent can run it by name in a child
/// process.
#[test]
#[ignore = "run by kill_9_loses_nothing_that_was_answered"]
fn child_that_commits() {
    let (Ok(folder), Ok(round)) = (std::env::var(FOLDER), std::env::var(ROUND)) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async move {
        let store = Arc::new(SqliteStore::open(&Path::new(&folder).join(FILE_NAME)).unwrap());
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let store = Arc::clone(&store);
                let round = round.clone();
                tokio::spawn(async move {
                    for number in 0u64.. {
                        commit_one(&store, &format!("{round}/{task}/{number:06}")).await;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

/// Commits two rows in one batch, so that a half-committed batch would be noticed.
async fn commit_one(store: &SqliteStore, id: &str) {
    let value = id.repeat(20).into_bytes();
    let batch = Batch::default().put(key(Table::Run, id), value.clone(), Expect::Absent).put(
        key(Table::Connection, id),
        value,
        Expect::Absent,
    );
    store.commit(batch).await.unwrap();
    writeln!(std::io::stdout().lock(), "\nanswered {id}").unwrap();
}

#[test]
fn kill_9_loses_nothing_that_was_answered() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut answered = BTreeSet::new();
    for round in 0..ROUNDS {
        let before = answered.len();
        answered.extend(run_and_kill(dir.path(), round));
        assert!(answered.len() > before, "round {round} got no answer, so it proves nothing");
        let stored = runtime.block_on(check_stored_batches(dir.path(), &answered));
        // Each task of a killed process may have had one batch under way, and one answer that it could not print.
        let unanswered = stored - answered.len();
        assert!(unanswered <= 2 * TASKS * (round + 1), "{unanswered} batches are stored without an answer");
    }
}

#[test]
fn a_killed_process_does_not_stop_another_one_on_the_same_folder() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let first = Running::start(dir.path(), 0);
    let second = Running::start(dir.path(), 1);
    first.wait_for_answers(1);
    second.wait_for_answers(1);
    let mut answered: BTreeSet<String> = first.kill().into_iter().collect();
    {
        let store = SqliteStore::open(&dir.path().join(FILE_NAME)).unwrap();
        check_answered(&runtime.block_on(stored_ids(&store, Table::Run)), &answered);
    }
    second.wait_for_answers(100);
    answered.extend(second.kill());
    assert!(answered.iter().any(|id| id.starts_with("00/")) && answered.iter().any(|id| id.starts_with("01/")));
    runtime.block_on(check_stored_batches(dir.path(), &answered));
}

fn run_and_kill(folder: &Path, round: usize) -> Vec<String> {
    let running = Running::start(folder, round);
    running.wait_for_answers(1);
    std::thread::sleep(Duration::from_micros(random_below(150_000)));
    running.kill()
}

/// A child process, and a thread that collects the ids of its answered batches.
struct Running {
    child: Child,
    /// The thread that collects the ids. It returns them when the child's output ends.
    reader: JoinHandle<Vec<String>>,
    /// Receives a message for each answered batch.
    answers: Receiver<()>,
}

impl Running {
    fn start(folder: &Path, round: usize) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::child_that_commits", "--ignored", "--nocapture"])
            .env(FOLDER, folder)
            .env(ROUND, format!("{round:02}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (answer, answers) = channel();
        let reader = std::thread::spawn(move || {
            let mut answered = Vec::new();
            let mut line = String::new();
            // The kill may have cut the last line, so a line without its end is not counted.
            while output.read_line(&mut line).unwrap_or(0) > 0 && line.ends_with('\n') {
                if let Some(id) = line.trim_end().strip_prefix("answered ") {
                    answered.push(id.to_owned());
                    let _ = answer.send(());
                }
                line.clear();
            }
            answered
        });
        Self { child, reader, answers }
    }

    fn wait_for_answers(&self, count: usize) {
        for _ in 0..count {
            self.answers.recv_timeout(Duration::from_secs(30)).expect("the child is answered");
        }
    }

    fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.reader.join().unwrap()
    }
}

fn random_below(below: u64) -> u64 {
    u64::from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos()) % below
}

/// Returns the number of stored batches, after checking that each is whole and that every answered one is among them.
async fn check_stored_batches(folder: &Path, answered: &BTreeSet<String>) -> usize {
    let store = SqliteStore::open(&folder.join(FILE_NAME)).unwrap();
    let runs = stored_ids(&store, Table::Run).await;
    let slots = stored_ids(&store, Table::Connection).await;
    let halves: Vec<_> = runs.symmetric_difference(&slots).collect();
    assert!(halves.is_empty(), "half a batch is there: {halves:?}");
    check_answered(&runs, answered);
    runs.len()
}

fn check_answered(stored: &BTreeSet<String>, answered: &BTreeSet<String>) {
    let lost: Vec<_> = answered.difference(stored).collect();
    assert!(lost.is_empty(), "answered and lost: {lost:?}");
}

async fn stored_ids(store: &SqliteStore, table: Table) -> BTreeSet<String> {
    let range = Range { tenant: TenantId::local(), table, prefix: String::new(), after: None, limit: usize::MAX };
    let rows = store.scan(&range).await.unwrap();
    for (id, row) in &rows {
        assert_eq!(row.value, id.repeat(20).into_bytes(), "{id} holds something that was never written");
    }
    rows.into_iter().map(|(id, _)| id).collect()
}
