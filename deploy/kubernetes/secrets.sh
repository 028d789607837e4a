#!/bin/sh
# Makes the secrets of the component `tls` in a new folder: an authority, a certificate and a key for each role, a token for each
# client, and for each server the digests of the tokens that it accepts. Needs openssl.
#
#   deploy/kubernetes/secrets.sh my-secrets
#   kubectl -n minuet apply -f my-secrets/secrets.yaml
#
# With further names, it makes client certificates and tokens with the rights `evaluate` and `analyze` for clients outside the cluster,
# which stay in the folder:
#
#   deploy/kubernetes/secrets.sh my-secrets notebook
#
# Certificates are valid for DAYS (default 365). Keep the folder, above all authority.key, off the cluster.
set -eu
umask 077

folder=${1:?"usage: secrets.sh FOLDER [CLIENT...]"}
shift
days=${DAYS:-365}
mkdir "$folder"
cd "$folder"

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj "/CN=minuet authority" \
  -addext "keyUsage=critical,keyCertSign,cRLSign" -keyout authority.key -out ca.crt 2> /dev/null

# certificate NAME USAGE
certificate() {
  printf 'subjectAltName=DNS:%s\nextendedKeyUsage=%s\n' "$1" "$2" > "$1.ext"
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr" 2> /dev/null
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey authority.key -CAcreateserial -days "$days" -extfile "$1.ext" -out "$1.crt" 2> /dev/null
  rm "$1.ext" "$1.csr"
}

# accept SERVER NAME RIGHTS: a line of the server's file, with the digest of the token
accept() {
  digest=$(openssl dgst -sha256 -r "$2.token" | cut -d' ' -f1)
  printf '%s %s sha256:%s\n' "$2" "$3" "$digest" >> "$1.tokens"
}

# secret NAME KEY=FILE...
secret() {
  printf -- '---\napiVersion: v1\nkind: Secret\nmetadata: {name: %s}\ndata:\n' "$1"
  shift
  for entry in "$@"; do
    printf '  %s: %s\n' "${entry%%=*}" "$(openssl base64 -A -in "${entry#*=}")"
  done
}

for server in inference-server replay-store; do
  certificate "$server" serverAuth
done
# A server that is a client of the inference servers.
certificate analysis serverAuth,clientAuth
openssl rand -hex 32 | tr -d '\n' > analysis.token
for client in actor learner studio command "$@"; do
  certificate "$client" clientAuth
  openssl rand -hex 32 | tr -d '\n' > "$client.token"
done
accept inference-server actor evaluate
accept inference-server studio evaluate
accept inference-server analysis evaluate
accept analysis command analyze
for client in "$@"; do
  accept inference-server "$client" evaluate
  accept analysis "$client" analyze
done
accept replay-store actor append
accept replay-store learner sample
accept replay-store studio sample
accept replay-store command sample,append

{
  for role in inference-server replay-store analysis actor learner studio command; do
    secret "minuet-tls-$role" "tls.crt=$role.crt" "tls.key=$role.key" ca.crt=ca.crt
  done
  for client in actor learner studio command; do
    secret "minuet-token-$client" "token=$client.token"
  done
  for server in inference-server replay-store; do
    secret "minuet-tokens-$server" "tokens=$server.tokens"
  done
  secret minuet-tokens-analysis tokens=analysis.tokens token=analysis.token
} > secrets.yaml
