/** Packs texts into a ZIP file, which every system opens. */
import { strToU8, Zip, ZipDeflate } from 'fflate'

export interface ZipEntry {
  name: string
  text: string
}

/** One text after the other; the page can do other things between them. `time`: of all files in it. */
export async function zipOf(entries: readonly ZipEntry[], time: Date): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = []
  const zip = new Zip((error, chunk) => {
    if (error !== null) throw error
    parts.push(chunk as Uint8Array<ArrayBuffer>)
  })
  for (const { name, text } of entries) {
    const file = new ZipDeflate(name)
    file.mtime = time
    zip.add(file)
    file.push(strToU8(text), true)
    await new Promise((resolve) => setTimeout(resolve))
  }
  zip.end()
  return new Blob(parts, { type: 'application/zip' })
}
