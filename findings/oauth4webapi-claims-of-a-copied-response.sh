#!/bin/sh
# Guess: the token response of oauth4webapi is plain data: stored as JSON, or copied with `{ ...tokens }`, it still says who has signed in.
# What happens: the validated claims hang on the object itself. For a spread, or what was read back from JSON, `getValidatedIdTokenClaims` throws a
# TypeError that speaks of garbage collection, although `id_token` stands in the copy and nothing was collected.
# Why it matters here: a sign-in must read the claims before it adds anything to the response or puts it into a session.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund oauth4webapi@3.8.8 jose@6.2.18 >/dev/null
cat > run.mjs <<'JS'
import * as oauth from 'oauth4webapi'
import { generateKeyPair, SignJWT } from 'jose'

const [issuer, client_id] = ['https://id.example', 'page']
const { privateKey } = await generateKeyPair('RS256')
const id_token = await new SignJWT({ name: 'Ann' })
  .setProtectedHeader({ alg: 'RS256' })
  .setIssuer(issuer).setAudience(client_id).setSubject('ann').setIssuedAt().setExpirationTime('5m')
  .sign(privateKey)
const response = Response.json({ access_token: 'a', token_type: 'bearer', id_token })
const tokens = await oauth.processAuthorizationCodeResponse({ issuer }, { client_id }, response)
const subOf = (each) => {
  try {
    return oauth.getValidatedIdTokenClaims(each)?.sub
  } catch (error) {
    return `${error.name}: ${error.message}`
  }
}
console.log('the response itself:', subOf(tokens))
console.log('a spread of it:', subOf({ ...tokens }), 'with an id_token:', 'id_token' in { ...tokens })
console.log('from JSON:', subOf(JSON.parse(JSON.stringify(tokens))))
JS
echo "oauth4webapi $(node -p "require('./node_modules/oauth4webapi/package.json').version"), Node $(node -v)"
said=$(node run.mjs)
echo "$said"
case "$said" in *"itself: ann"*"spread of it: TypeError"*"an id_token: true"*"JSON: TypeError"*) ;; *) echo "changed"; exit 1 ;; esac
