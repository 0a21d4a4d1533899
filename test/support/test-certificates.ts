/**
 * Certificates for tests only, good until the year 2124: a CA, a server that is `localhost` and nothing else, and a client. Their keys are public, here: trust
 * them nowhere. The key of the CA was thrown away.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The CA. */
const testOnlyCa = `-----BEGIN CERTIFICATE-----
MIIBhzCCAS2gAwIBAgIBATAKBggqhkjOPQQDAjAqMSgwJgYDVQQDDB9NaWxscmFj
ZSB0ZXN0IENBIChub3QgYSBzZWNyZXQpMCAXDTI0MDEwMTAwMDAwMFoYDzIxMjQw
MTAxMDAwMDAwWjAqMSgwJgYDVQQDDB9NaWxscmFjZSB0ZXN0IENBIChub3QgYSBz
ZWNyZXQpMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEUyk7uVuA6moE/dawuSXF
3anJVMvgkK23vfHbsJwKaBXWq+gOMMm0VcMVmq1+O+RWWjmfGJvQOmobAzObzSOn
E6NCMEAwDwYDVR0TAQH/BAUwAwEB/zAOBgNVHQ8BAf8EBAMCAgQwHQYDVR0OBBYE
FIEzTivr7tIyfh7Mw96Jo+FPQpeZMAoGCCqGSM49BAMCA0gAMEUCIFk0t47Przj7
UEiE+vwNLf3S2bUe99fpmzkkQR+GHgCVAiEAnWiR/9wUi6VCGiGrN5IOCKPMLvvp
7+mHVwBNgPL7JCw=
-----END CERTIFICATE-----
`

/** The server, for `localhost`. */
const testOnlyServerCert = `-----BEGIN CERTIFICATE-----
MIIBnTCCAUOgAwIBAgIBAjAKBggqhkjOPQQDAjAqMSgwJgYDVQQDDB9NaWxscmFj
ZSB0ZXN0IENBIChub3QgYSBzZWNyZXQpMCAXDTI0MDEwMTAwMDAwMFoYDzIxMjQw
MTAxMDAwMDAwWjAfMR0wGwYDVQQDDBRNaWxscmFjZSB0ZXN0IHNlcnZlcjBZMBMG
ByqGSM49AgEGCCqGSM49AwEHA0IABKtJFPKnmv8hgCX+IhldnqJSjujkS5Y44CiW
M3pQURvxVmKaWOgnlh4lzLR9EaU2nojYEdsWTgi2lacuhLY0uZ+jYzBhMBQGA1Ud
EQQNMAuCCWxvY2FsaG9zdDAJBgNVHRMEAjAAMB0GA1UdDgQWBBRONtwmztNDvvwv
/X2XMOGv0ZuuLzAfBgNVHSMEGDAWgBSBM04r6+7SMn4ezMPeiaPhT0KXmTAKBggq
hkjOPQQDAgNIADBFAiEAyy4WTeg+XlesfZxQv06VgH3mvFo47cNZOf6TvAzi55kC
IE1S55VcD96eNGYmhIuhZj/0QbakZgBD7vHA4b0KXPY/
-----END CERTIFICATE-----
`

/** A key that anybody may know. */
const testOnlyServerKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgdu3YWPFL5k1Tl/i5
vRf/s+l4qF+kffZCsHwqt0UiftShRANCAASrSRTyp5r/IYAl/iIZXZ6iUo7o5EuW
OOAoljN6UFEb8VZimljoJ5YeJcy0fRGlNp6I2BHbFk4ItpWnLoS2NLmf
-----END PRIVATE KEY-----
`

/** The client. */
const testOnlyClientCert = `-----BEGIN CERTIFICATE-----
MIIBnDCCAUKgAwIBAgIBAzAKBggqhkjOPQQDAjAqMSgwJgYDVQQDDB9NaWxscmFj
ZSB0ZXN0IENBIChub3QgYSBzZWNyZXQpMCAXDTI0MDEwMTAwMDAwMFoYDzIxMjQw
MTAxMDAwMDAwWjAfMR0wGwYDVQQDDBRNaWxscmFjZSB0ZXN0IGNsaWVudDBZMBMG
ByqGSM49AgEGCCqGSM49AwEHA0IABAN9+K2tiHO6yB7jcZRBLb2BWNJBIuBUwtpi
NU/2BzG6ZSPt0WNI7BrLyS4bFQ3HFBNlKp/lpqXJU6+0RaJ4mpujYjBgMAkGA1Ud
EwQCMAAwEwYDVR0lBAwwCgYIKwYBBQUHAwIwHQYDVR0OBBYEFEiAsdY0B3XhGC+I
zRsWQrS6abnLMB8GA1UdIwQYMBaAFIEzTivr7tIyfh7Mw96Jo+FPQpeZMAoGCCqG
SM49BAMCA0gAMEUCIQCDcUxOB3hnaWVFEokPajIIrdRp3NufVrRZ2Evc56grNwIg
T25VOIFyOSowUJFA2wkfhHjkKSLYghvZVIkzrkk79Ss=
-----END CERTIFICATE-----
`

/** A key that anybody may know. */
const testOnlyClientKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgXu1z10jv0FZpyDAs
00YLEtynSm5z+BqMNl/id+3ZixahRANCAAQDffitrYhzusge43GUQS29gVjSQSLg
VMLaYjVP9gcxumUj7dFjSOway8kuGxUNxxQTZSqf5aalyVOvtEWieJqb
-----END PRIVATE KEY-----
`

export interface TestCertificates {
  ca: string
  serverCert: string
  serverKey: string
  clientCert: string
  clientKey: string
}

/** Writes them into a folder, and returns their paths. */
export function writeTestCertificates(dir: string): TestCertificates {
  const write = (name: string, pem: string) => {
    const path = join(dir, name)
    writeFileSync(path, pem)
    return path
  }
  return {
    ca: write('ca.pem', testOnlyCa),
    serverCert: write('server.pem', testOnlyServerCert),
    serverKey: write('server.key', testOnlyServerKey),
    clientCert: write('client.pem', testOnlyClientCert),
    clientKey: write('client.key', testOnlyClientKey),
  }
}
