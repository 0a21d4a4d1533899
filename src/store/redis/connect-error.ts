/** Why a store cannot be opened, with the cure. Nothing of what Redis says is passed on that may name its user. */
import { MillraceError, messageOf } from '../../part/error.ts'
import { redisFailed } from './redis-failed.ts'
import type { Keys } from './keys.ts'
import { channelsOf, keysOf } from './rights.ts'
import { isTlsFault } from './tls.ts'
import type { RedisAddress } from './url.ts'

const listed = 'docs/scale.md lists all that its user needs (ACL SETUSER)'

/** `shown`: the address without user and password. */
export function explainFailure(error: unknown, address: RedisAddress, shown: string, keys: Keys): MillraceError {
  if (error instanceof MillraceError) return error
  const message = messageOf(error)
  const refused = (why: string) =>
    new MillraceError('store-failed', `${shown} refuses the connection: ${why}`, {
      detail: /^[A-Z]+/u.exec(message)?.[0] ?? '',
    })
  if (message.startsWith('NOPERM')) return lackingRights(shown, [rightIn(message, keys)])
  if (
    /^NOAUTH|^ERR.*(?:without any password|already authenticated)/iu.test(message) &&
    address.password === undefined
  ) {
    return refused('it asks for a password; write redis://user:password@host')
  }
  if (/WRONGPASS|NOAUTH|invalid password/iu.test(message)) return refused('check user and password of the URL')
  if (message.startsWith('READONLY')) return refused('it is a replica; write the address of its primary')
  if (message.includes('SELECT is not allowed in cluster mode')) return noDatabase(shown, address)
  if (isTlsFault(error)) {
    return new MillraceError('store-failed', `cannot trust ${shown}: ${cureOf(error, address)}`, { detail: message })
  }
  return redisFailed('cannot reach Redis', shown, error)
}

export function noDatabase(shown: string, { database }: RedisAddress): MillraceError {
  return new MillraceError('bad-config', `${shown}: a cluster has no database ${database}; use ?prefix=`)
}

/** `rights`: as `ACL SETUSER` takes them. */
export function lackingRights(shown: string, rights: readonly string[]): MillraceError {
  return new MillraceError('store-failed', `the user of ${shown} lacks rights: ${rights.join(' ')}. ${listed}`)
}

function rightIn(message: string, keys: Keys): string {
  const command = /'([\w|]+)' (?:sub)?command/u.exec(message)?.[1]
  if (command !== undefined) return `+${command.toLowerCase()}`
  return message.includes('channel') ? channelsOf(keys) : keysOf(keys)
}

function cureOf(error: Error & { code: string }, { hosts, files }: RedisAddress): string {
  const { code } = error
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    const names = hosts.map(({ host }) => host).join(', ')
    return `its certificate is for another host than ${names}. Use a name that stands in the certificate; the nodes of a cluster must announce theirs (cluster-announce-hostname)`
  }
  if (/CERTIFICATE_REQUIRED|BAD_CERTIFICATE|UNKNOWN_CA|HANDSHAKE_FAILURE/u.test(code)) {
    return 'it asks for a certificate of this side, or does not trust it: ?cert=/path/client.pem&key=/path/client-key.pem'
  }
  if (code === 'CERT_HAS_EXPIRED') return 'its certificate has expired'
  if (code === 'CERT_NOT_YET_VALID') return 'its certificate is not valid yet; look at the clock of this machine'
  if (/CERT|ISSUER|SIGNATURE/u.test(code)) {
    return files?.ca === undefined
      ? 'its certificate is of an authority that is not known here: set NODE_EXTRA_CA_CERTS=/path/ca.pem, or add ?ca=/path/ca.pem to the URL'
      : 'its certificate is not of the authority in ?ca='
  }
  return 'TLS fails'
}
