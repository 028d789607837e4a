//! Checks the token of each call.
//!
//! Health needs no token, because probes have none. If the server has tokens, every other call, reflection included, needs one;
//! each service states the right that a call needs ([`Methods`]). Open calls end when their token does ([`Held::ended`]).

use tonic::{Status, codegen::http};

use super::{
    known::{Held, KnownTokens, denied},
    methods::{Method, Methods},
    tokens::TokenDigest,
};

/// Scheme of the `authorization` header. HTTP compares schemes without regard to case.
const SCHEME: &str = "Bearer";

/// Checks the tokens of calls. A server without tokens accepts every call.
#[derive(Clone, Debug)]
pub struct Guard {
    pub(crate) tokens: Option<KnownTokens>,
    pub(crate) methods: Methods,
}

impl Guard {
    /// Checks that a call of `path` with this `authorization` header is allowed, and returns the method's rules and the token that the
    /// call holds, if it needs one.
    ///
    /// # Errors
    /// UNAUTHENTICATED without a known token, PERMISSION_DENIED if the token lacks the right, UNAVAILABLE if the server cannot read
    /// its tokens.
    pub(crate) fn check(
        &self,
        path: &str,
        authorization: Option<&http::HeaderValue>,
    ) -> Result<(Method, Option<Held>), Status> {
        let method = Method::at(path, self.methods);
        let Some(tokens) = self.tokens.as_ref().filter(|_| method.needs_token()) else {
            return Ok((method, None));
        };
        let unauthenticated = |reason, message| denied(reason, Status::unauthenticated(message));
        let Some(authorization) = authorization else {
            let message = "a token is needed: authorization: Bearer TOKEN";
            return Err(unauthenticated("missing", message));
        };
        let words = authorization
            .to_str()
            .ok()
            .and_then(|words| words.split_once(' '));
        let token = words.and_then(|(scheme, token)| scheme.eq_ignore_ascii_case(SCHEME).then_some(token));
        let token = token.ok_or_else(|| unauthenticated("malformed", "write authorization: Bearer TOKEN"))?;
        let held = tokens.held(TokenDigest::of(token), method.access);
        held.check()?;
        Ok((method, Some(held)))
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;
    use crate::security::{
        methods::Access,
        tokens::{Right, Tokens},
    };

    fn methods(path: &str) -> Method {
        match path {
            "/a.A/Any" => Method::new(Access::AnyToken),
            "/a.A/Load" => Method::needs(Right::Administer),
            _ => Method::needs(Right::Evaluate),
        }
    }

    #[test]
    fn a_call_needs_a_known_token_with_its_right() {
        let text = "actors evaluate 0123456789abcdef\nlearner sample fedcba9876543210";
        let guard = Guard {
            tokens: Some(KnownTokens::new(Tokens::parse(text).unwrap())),
            methods,
        };
        let ask = |path: &str, header: Option<&'static str>| {
            let header = header.map(http::HeaderValue::from_static);
            let checked = guard.check(path, header.as_ref());
            checked.map(drop).map_err(|status| status.code())
        };
        let actor = Some("Bearer 0123456789abcdef");
        let learner = Some("Bearer fedcba9876543210");
        assert_eq!(ask("/a.A/Ask", actor), Ok(()));
        assert_eq!(ask("/a.A/Ask", Some("bearer 0123456789abcdef")), Ok(()));
        assert_eq!(ask("/a.A/Ask", learner), Err(Code::PermissionDenied));
        assert_eq!(ask("/a.A/Load", actor), Err(Code::PermissionDenied));
        assert_eq!(ask("/a.A/Any", learner), Ok(()));
        assert_eq!(ask("/a.A/Any", None), Err(Code::Unauthenticated));
        for wrong in ["Bearer 0123456789abcdeg", "0123456789abcdef", "bearer", "Bearer "] {
            assert_eq!(
                ask("/a.A/Ask", Some(wrong)),
                Err(Code::Unauthenticated),
                "{wrong}"
            );
        }
        assert_eq!(ask("/grpc.health.v1.Health/Check", None), Ok(()));
        let reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
        assert_eq!(ask(reflection, None), Err(Code::Unauthenticated));
        assert_eq!(ask(reflection, learner), Ok(()));
        // Without a readable file no token is known, and probes are still answered.
        guard.tokens.as_ref().unwrap().set(None);
        assert_eq!(ask("/a.A/Ask", actor), Err(Code::Unavailable));
        assert_eq!(ask("/grpc.health.v1.Health/Check", None), Ok(()));
        let open = Guard {
            tokens: None,
            methods,
        };
        assert!(open.check("/a.A/Load", None).is_ok());
    }
}
