//! The writer thread: it commits waiting batches in groups.
//!
//! A commit is durable only after the disk has flushed, and a flush takes much longer than the writes before it. So batches
//! that arrive during a flush wait and are committed together: each in its own savepoint, all in one transaction, with one
//! flush.
//!
//! Invariants:
//! - A batch is answered only after the transaction that holds it is durable, or is known not to be.
//! - A conflict undoes its own batch and no other. A batch that finds no space does not fail the others of its group.
//! - After any failure, the next group starts on a usable connection or gets an error that says why there is none.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ports::store::{Batch, Error, Key, Write};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::Options;
use super::connection::{IfMissing, OpenedDatabase, open_writer, wait_while_busy};
use super::error::{SqliteError, leaves_connection_usable};
use super::rows;
use crate::OpenError;

/// A group with this many batches or bytes is committed, even if more batches wait: the first caller of the group waits for
/// all of it.
const MAX_GROUP_BATCHES: usize = 256;
const MAX_GROUP_BYTES: usize = 8 * 1024 * 1024;

/// A batch to commit, and the channel for its result.
#[derive(Debug)]
pub struct CommitRequest {
    pub batch: Batch,
    pub answer: oneshot::Sender<Result<(), Error>>,
}

/// The state of the writer thread.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    options: Options,
    /// The only connection that writes. `None` after a failure that may have broken it; the next group opens another one.
    opened: Option<OpenedDatabase>,
}

/// The result of one batch of a committed group. The error is the key of a conflict.
type BatchOutcome = Result<(), Key>;

/// Why a group was not committed.
enum GroupError {
    /// A batch could not be applied. Nothing was committed, so the batches may be tried one by one.
    Apply(SqliteError),
    /// The transaction could not begin, or its commit failed. The batches may not be tried again: after a failed commit they
    /// may be durable.
    Transaction(SqliteError),
}

/// The part of a transaction that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Begin,
    Apply,
    Commit,
}

impl Writer {
    /// Opens the database, which is created if it does not exist.
    pub fn open(path: &Path, options: &Options) -> Result<Self, OpenError> {
        let opened = open_writer(path, options, IfMissing::Create)?;
        Ok(Self { path: path.to_owned(), options: options.clone(), opened: Some(opened) })
    }

    /// Commits requests until the last sender is dropped and every request is answered.
    pub fn run(mut self, mut requests: mpsc::Receiver<CommitRequest>) {
        while let Some(first) = requests.blocking_recv() {
            let group = collect_group(first, &mut requests);
            self.commit_group(group);
        }
    }

    fn commit_group(&mut self, group: Vec<CommitRequest>) {
        let batches: Vec<&Batch> = group.iter().map(|request| &request.batch).collect();
        match self.try_commit(&batches) {
            Ok(outcomes) => {
                for (request, outcome) in group.into_iter().zip(outcomes) {
                    answer(request, outcome.map_err(Error::Conflict));
                }
            }
            // One by one, so that only the batch with the fault fails.
            Err(GroupError::Apply(_)) if group.len() > 1 => {
                for request in group {
                    self.commit_group(vec![request]);
                }
            }
            Err(GroupError::Apply(error) | GroupError::Transaction(error)) => {
                for request in group {
                    answer(request, Err(error.clone().into()));
                }
            }
        }
    }

    /// Commits the batches in one transaction. After an error the connection is kept only if it is certainly usable.
    fn try_commit(&mut self, batches: &[&Batch]) -> Result<Vec<BatchOutcome>, GroupError> {
        let opened = self.take_connection().map_err(GroupError::Transaction)?;
        let connection = &opened.connection;
        let (phase, error) = match transact(connection, self.options.busy_timeout, batches) {
            Ok(outcomes) => {
                self.opened = Some(opened);
                return Ok(outcomes);
            }
            Err(failure) => failure,
        };
        tracing::warn!(%error, ?phase, batches = batches.len(), "a commit failed");
        // Some errors end the transaction, others leave it open. An open one would swallow the next group.
        let is_rolled_back = connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok();
        if is_rolled_back && leaves_connection_usable(&error) {
            self.opened = Some(opened);
        }
        Err(match phase {
            Phase::Apply => GroupError::Apply(error.into()),
            Phase::Begin | Phase::Commit => GroupError::Transaction(error.into()),
        })
    }

    /// Takes the connection out of `self`. Another one is opened if there is none, or if the file at the path is another one
    /// now: a commit to a file that was moved away would be lost.
    fn take_connection(&mut self) -> Result<OpenedDatabase, SqliteError> {
        // If the file was moved away, the connection is closed here, and SQLite does not touch the WAL that is at the path now.
        if let Some(opened) = self.opened.take()
            && opened.is_on(&self.path).unwrap_or(false)
        {
            return Ok(opened);
        }
        // A missing database is an error here. An empty one in its place would hide the loss.
        let opened = open_writer(&self.path, &self.options, IfMissing::Fail)?;
        tracing::info!(path = %self.path.display(), "the database was opened again");
        Ok(opened)
    }
}

/// Adds the requests that wait at this moment to `first`, up to the bounds of a group. It does not wait for more: a lone
/// caller gets its flush at once.
fn collect_group(first: CommitRequest, requests: &mut mpsc::Receiver<CommitRequest>) -> Vec<CommitRequest> {
    let mut bytes = size_of(&first.batch);
    let mut group = vec![first];
    while group.len() < MAX_GROUP_BATCHES && bytes < MAX_GROUP_BYTES {
        let Ok(request) = requests.try_recv() else { break };
        bytes += size_of(&request.batch);
        group.push(request);
    }
    group
}

fn size_of(batch: &Batch) -> usize {
    let value_bytes = |write: &Write| match write {
        Write::Put { value, .. } => value.len(),
        Write::Delete { .. } => 0,
    };
    batch.writes.iter().map(value_bytes).sum()
}

/// Runs one transaction. When this returns `Ok`, the outcomes are durable (`synchronous = FULL`).
fn transact(
    connection: &Connection,
    busy_timeout: Duration,
    batches: &[&Batch],
) -> Result<Vec<BatchOutcome>, (Phase, rusqlite::Error)> {
    // `IMMEDIATE` takes the write lock at once. A transaction that began as a read could not wait for the lock later.
    wait_while_busy(busy_timeout, || execute(connection, "BEGIN IMMEDIATE")).map_err(|error| (Phase::Begin, error))?;
    let applied = match batches {
        // A batch alone in its group needs no savepoint, for which SQLite would copy every page that it changes.
        [batch] => rows::apply(connection, batch).map(|outcome| vec![outcome]),
        _ => apply_in_savepoints(connection, batches),
    };
    let outcomes = applied.map_err(|error| (Phase::Apply, error))?;
    // Without savepoints, a conflict is undone with the transaction.
    let end = if matches!(outcomes.as_slice(), [Err(_)]) { "ROLLBACK" } else { "COMMIT" };
    execute(connection, end).map_err(|error| (Phase::Commit, error))?;
    Ok(outcomes)
}

fn apply_in_savepoints(connection: &Connection, batches: &[&Batch]) -> rusqlite::Result<Vec<BatchOutcome>> {
    let mut outcomes = Vec::with_capacity(batches.len());
    for batch in batches {
        execute(connection, "SAVEPOINT batch")?;
        let outcome = rows::apply(connection, batch)?;
        if outcome.is_err() {
            execute(connection, "ROLLBACK TO batch")?;
        }
        execute(connection, "RELEASE batch")?;
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// Executes a statement that is parsed once for the connection. With cold caches, parsing takes as long as one of the writes.
fn execute(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

fn answer(request: CommitRequest, result: Result<(), Error>) {
    // The caller may have stopped waiting. Its batch stays committed.
    let _ = request.answer.send(result);
}
