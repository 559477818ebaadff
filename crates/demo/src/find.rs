//! Finds what a path names, or says that it does not exist.
//! Invariant: the project is looked for before the ticket, so the 404 names the first thing that is missing.

use crate::error::ApiError;
use crate::query::positive;
use crate::world::{Person, Project, Ticket, World};

pub fn project<'w>(world: &'w World, key: &str) -> Result<&'w Project, ApiError> {
    world.project(key).ok_or_else(|| ApiError::NoProject { key: key.to_owned() })
}

pub fn person<'w>(world: &'w World, id: &str) -> Result<&'w Person, ApiError> {
    world.person(id).ok_or_else(|| ApiError::NoPerson { id: id.to_owned() })
}

/// The two segments are a project's key and a number, as the path has them.
pub fn ticket<'w>(world: &'w World, (key, number): &(String, String)) -> Result<&'w Ticket, ApiError> {
    let number = positive("number", number)?;
    let project = project(world, key)?;
    world.ticket(&project.key, number).ok_or_else(|| ApiError::NoTicket { project: project.key.clone(), number })
}
