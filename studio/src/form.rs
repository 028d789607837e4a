//! [`Fields`]: the fields of a form that a browser posts. [`Parameters`]: the parameters of an address.

use axum::{
    Form,
    extract::{FromRequest, FromRequestParts, Query, Request},
    http::request::Parts,
};
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// The fields of a form. One that cannot be read is refused on a page, as [`Failure::BadRequest`].
#[derive(Clone, Copy, Debug)]
pub struct Fields<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Fields<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let form = Form::from_request(request, state).await;
        let Form(fields) =
            form.map_err(|error| Failure::BadRequest(format!("The form: {}.", error.body_text())))?;
        Ok(Self(fields))
    }
}

/// The parameters of an address. One that cannot be read is refused on a page, as [`Failure::BadRequest`].
#[derive(Clone, Copy, Debug)]
pub struct Parameters<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let query = Query::from_request_parts(parts, state).await;
        let Query(parameters) =
            query.map_err(|error| Failure::BadRequest(format!("The address: {}.", error.body_text())))?;
        Ok(Self(parameters))
    }
}
