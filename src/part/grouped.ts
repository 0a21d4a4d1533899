/** `114,792`: without the locale of the machine, because it stands in logs and prompts. A whole number from 0. */
export function grouped(count: number): string {
  return String(count).replaceAll(/\B(?=(?:\d{3})+$)/gu, ',')
}
