//! The writer thread of the SQLite store. It commits waiting batches of writes in groups.
//!
//! A commit is durable only after the disk has flushed, and a flush takes much longer than the writes before it. So the
//! batches that arrive during a flush wait, and are then committed together in one transaction with one flush. Each
//! batch has its own savepoint in the transaction.
//!
//! Invariants:
//! - A batch is answered only after its transaction is durable or has failed.
//! - A conflict undoes only the batch that has it. A batch that does not fit on the disk does not fail the other
//!   batches of its group.
//! - After a failure, the next group either uses a working connection or gets the error of opening one.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ports::store::{Batch, Error, Key, Write};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::Options;
use super::connection::{FileIds, FilesState, IfMissing, OpenedDatabase, open_writer};
use super::error::{SqliteError, leaves_connection_usable};
use super::modes::wait_while_busy;
use super::readers::IdleReaders;
use super::rows;
use crate::OpenError;

/// A group is committed when it has this number of batches or bytes, even if more batches wait. The bound limits how
/// long the first caller of the group waits.
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
    /// The only connection that writes. It is `None` after a failure that may have broken the connection; the next
    /// group then opens another one.
    opened: Option<OpenedDatabase>,
    /// The idle connections for reads, which are closed before another connection is opened for changed files.
    idle_readers: Arc<IdleReaders>,
    /// The files of the connection that was opened last, for the readers.
    files: Arc<Mutex<FileIds>>,
    has_written: bool,
}

/// The report of a writer that has ended.
#[derive(Debug)]
pub struct Closed {
    /// A batch with a write is durable.
    pub has_written: bool,
}

/// The result of one batch of a committed group. The error is the key of the write whose expectation was not met.
type BatchOutcome = Result<(), Key>;

/// The reason for which a group was not committed.
enum GroupError {
    /// A batch could not be applied and the transaction was rolled back, so the batches may be tried one by one.
    Apply(SqliteError),
    /// The transaction could not begin, or its commit failed. The batches are not tried again, because they may be
    /// durable after a failed commit.
    Transaction(SqliteError),
}

/// The part of a transaction in which an error occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Begin,
    Apply,
    Commit,
}

impl Writer {
    /// Opens the database for writing. It is created if it does not exist.
    pub fn open(path: &Path, idle_readers: Arc<IdleReaders>, options: &Options) -> Result<Self, OpenError> {
        let opened = open_writer(path, options, IfMissing::Create)?;
        let files = Arc::new(Mutex::new(opened.ids()));
        let path = path.to_owned();
        Ok(Self { path, options: options.clone(), opened: Some(opened), idle_readers, files, has_written: false })
    }

    /// Returns the files of the connection that was opened last. The value changes when the writer opens another connection.
    pub fn files(&self) -> Arc<Mutex<FileIds>> {
        Arc::clone(&self.files)
    }

    /// Commits requests until the last sender is dropped and every request is answered.
    pub fn run(mut self, mut requests: mpsc::Receiver<CommitRequest>) -> Closed {
        while let Some(first) = requests.blocking_recv() {
            let group = collect_group(first, &mut requests);
            self.commit_group(group);
        }
        Closed { has_written: self.has_written }
    }

    fn commit_group(&mut self, group: Vec<CommitRequest>) {
        let batches: Vec<&Batch> = group.iter().map(|request| &request.batch).collect();
        match self.try_commit(&batches) {
            Ok(outcomes) => {
                for (request, outcome) in group.into_iter().zip(outcomes) {
                    self.has_written |= outcome.is_ok() && !request.batch.writes.is_empty();
                    send_answer(request, outcome.map_err(Error::Conflict));
                }
            }
            // Each batch is tried in a transaction of its own, so that only the batch with the fault fails.
            Err(GroupError::Apply(_)) if group.len() > 1 => {
                for request in group {
                    self.commit_group(vec![request]);
                }
            }
            Err(GroupError::Apply(error) | GroupError::Transaction(error)) => {
                for request in group {
                    send_answer(request, Err(error.clone().into()));
                }
            }
        }
    }

    /// Commits the batches in one transaction. After an error the connection is kept only if it is known to be usable.
    fn try_commit(&mut self, batches: &[&Batch]) -> Result<Vec<BatchOutcome>, GroupError> {
        let opened = self.take_connection().map_err(GroupError::Transaction)?;
        let connection = &opened.connection;
        let (phase, error) = match run_transaction(connection, self.options.busy_timeout, batches) {
            Ok(outcomes) => return self.check_files(opened).map(|()| outcomes),
            Err(failure) => failure,
        };
        tracing::warn!(%error, ?phase, batches = batches.len(), "a commit to the database failed");
        // Some errors end the transaction, and others leave it open. An open transaction must be rolled back, because
        // the next group would become a part of it.
        let is_rolled_back = connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok();
        if is_rolled_back && leaves_connection_usable(&error) {
            self.opened = Some(opened);
        }
        Err(match phase {
            Phase::Apply => GroupError::Apply(error.into()),
            Phase::Begin | Phase::Commit => GroupError::Transaction(error.into()),
        })
    }

    /// Keeps the connection after a commit, if the commit went to the files that the paths lead to. Otherwise the commit is not
    /// acknowledged, because it may be in a file that no later reader opens.
    fn check_files(&mut self, opened: OpenedDatabase) -> Result<(), GroupError> {
        match opened.files_state() {
            Ok(FilesState::Unchanged) => {
                self.opened = Some(opened);
                Ok(())
            }
            Ok(state) => {
                self.idle_readers.clear();
                opened.close_after_change(state);
                let reason = "the files of the database were deleted or replaced during a commit";
                Err(GroupError::Transaction(SqliteError::unavailable(reason)))
            }
            Err(error) => {
                self.opened = Some(opened);
                Err(GroupError::Transaction(SqliteError::unavailable(error)))
            }
        }
    }

    /// Takes the connection out of `self`. A new connection is opened if there is none, or if a path leads to another
    /// file than before: a commit to a file that was moved or deleted would be lost.
    fn take_connection(&mut self) -> Result<OpenedDatabase, SqliteError> {
        if let Some(opened) = self.opened.take() {
            match opened.files_state() {
                Ok(FilesState::Unchanged) => return Ok(opened),
                Ok(state) => {
                    self.idle_readers.clear();
                    opened.close_after_change(state);
                }
                Err(error) => {
                    self.opened = Some(opened);
                    return Err(SqliteError::unavailable(error));
                }
            }
        }
        // A missing database is an error here, because a new empty database would hide the loss.
        let opened = open_writer(&self.path, &self.options, IfMissing::Fail)?;
        *self.files.lock().unwrap_or_else(PoisonError::into_inner) = opened.ids();
        tracing::info!(path = %self.path.display(), "the database was opened again, because its connection had failed or its file was replaced");
        Ok(opened)
    }
}

/// Returns a group of `first` and the requests that wait at this moment, up to the bounds of a group. The function does
/// not wait for more requests, so that a single request is committed at once.
fn collect_group(first: CommitRequest, requests: &mut mpsc::Receiver<CommitRequest>) -> Vec<CommitRequest> {
    let mut bytes = value_bytes_of(&first.batch);
    let mut group = vec![first];
    while group.len() < MAX_GROUP_BATCHES && bytes < MAX_GROUP_BYTES {
        let Ok(request) = requests.try_recv() else { break };
        bytes += value_bytes_of(&request.batch);
        group.push(request);
    }
    group
}

fn value_bytes_of(batch: &Batch) -> usize {
    let value_bytes = |write: &Write| match write {
        Write::Put { value, .. } | Write::PutIndexed { value, .. } => value.len(),
        Write::Delete { .. } | Write::Check { .. } => 0,
    };
    batch.writes.iter().map(value_bytes).sum()
}

/// Runs one transaction. If the function returns `Ok`, the batches without a conflict are durable (`synchronous =
/// FULL`).
fn run_transaction(
    connection: &Connection,
    busy_timeout: Duration,
    batches: &[&Batch],
) -> Result<Vec<BatchOutcome>, (Phase, rusqlite::Error)> {
    // `IMMEDIATE` takes the write lock at once. A transaction that begins with a read could fail at its first write
    // without waiting for the lock.
    wait_while_busy(busy_timeout, || execute_cached(connection, "BEGIN IMMEDIATE"))
        .map_err(|error| (Phase::Begin, error))?;
    let applied = match batches {
        // A single batch needs no savepoint. For a savepoint SQLite would copy every page that the batch changes.
        [batch] => rows::apply(connection, batch).map(|outcome| vec![outcome]),
        _ => apply_in_savepoints(connection, batches),
    };
    let outcomes = applied.map_err(|error| (Phase::Apply, error))?;
    // A single batch has no savepoint, so a conflict rolls back the whole transaction.
    let end = if matches!(outcomes.as_slice(), [Err(_)]) { "ROLLBACK" } else { "COMMIT" };
    execute_cached(connection, end).map_err(|error| (Phase::Commit, error))?;
    Ok(outcomes)
}

fn apply_in_savepoints(connection: &Connection, batches: &[&Batch]) -> rusqlite::Result<Vec<BatchOutcome>> {
    let mut outcomes = Vec::with_capacity(batches.len());
    for batch in batches {
        execute_cached(connection, "SAVEPOINT batch")?;
        let outcome = rows::apply(connection, batch)?;
        if outcome.is_err() {
            execute_cached(connection, "ROLLBACK TO batch")?;
        }
        execute_cached(connection, "RELEASE batch")?;
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// Executes a statement that the connection caches after parsing it. With cold caches, parsing a statement takes as
/// long as a write.
fn execute_cached(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

fn send_answer(request: CommitRequest, result: Result<(), Error>) {
    // A send error means that the caller stopped waiting. The batch stays committed.
    let _ = request.answer.send(result);
}
