/** The slot of a key in a cluster: CRC-16 (XModem) of its hash tag. */
export function slotOf(key: string): number {
  const tag = /\{([^}]+)\}/u.exec(key)?.[1] ?? key
  let crc = 0
  for (const byte of new TextEncoder().encode(tag)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff
  }
  return crc % 16_384
}
