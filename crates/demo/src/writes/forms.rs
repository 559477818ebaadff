//! A ticket from a form: urlencoded or multipart, with its project as a field.
//! Invariant: what a form opens is what the JSON route opens from the same fields.

use axum::extract::State;

use super::once::Write;
use super::tickets;
use crate::body::fields::Fields;
use crate::error::{Answer, ApiError};
use crate::query::Asked;
use crate::state::Shared;

pub async fn ticket(State(app): Shared, asked: Asked, write: Write) -> Answer {
    asked.none()?;
    let mut fields = Fields::from_form(&write.headers, &write.body)?;
    write.once(&app, |data| {
        let given = fields.required_text("project", usize::MAX);
        let known = given.filter(|key| data.world.project(key).is_some());
        match known {
            Some(key) => tickets::open(data, &key, fields),
            None => Err(unknown_project(fields)),
        }
    })
}

/// In a form the project is a field like any other, so it is refused like one.
fn unknown_project(mut fields: Fields) -> ApiError {
    if !fields.is_refused("project") {
        fields.refuse::<()>("project", "must be the key of a project");
    }
    fields.refused()
}
