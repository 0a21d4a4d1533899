import { isLoopback } from '../../../part/loopback.ts'

/** What an authorization server is told about us (RFC 7591). */
export function clientMetadata(redirectUri: string) {
  return {
    client_name: 'Millrace',
    redirect_uris: [redirectUri],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    application_type: isLoopback(new URL(redirectUri).hostname) ? 'native' : 'web',
  }
}
