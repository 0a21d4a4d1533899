/** A file of a message. Pictures are shown from a blob, which runs nothing, SVG too; others are offered to save. */
import { useEffect, useState } from 'react'
import { Icon } from '../../kit/Icon.tsx'
import { safeUrl } from '../../../src/react/safe-url.ts'
import css from './chat.module.css'

/** `data`: base64, a `data:` URL or an http(s) URL. */
export function FileView({ data, mediaType, name }: { data: string; mediaType: string; name?: string | undefined }) {
  const [url, setUrl] = useState<string>()
  useEffect(() => {
    const blob = toBlob(data, mediaType)
    if (blob === undefined) return
    const made = URL.createObjectURL(blob)
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [data, mediaType])
  const label = name ?? mediaType
  const remote = safeUrl(data)
  if (remote !== undefined) {
    return (
      <a className={css.file} href={remote} target="_blank" rel="noopener noreferrer nofollow">
        <Icon name="link" /> {label}
      </a>
    )
  }
  if (url === undefined) return <span className={css.file}>{label}</span>
  if (mediaType.startsWith('image/')) return <img className={css.picture} src={url} alt={label} />
  return (
    <a className={css.file} href={url} download={name ?? 'file'}>
      <Icon name="file" /> {label}
    </a>
  )
}

function toBlob(data: string, mediaType: string): Blob | undefined {
  const comma = data.startsWith('data:') ? data.indexOf(',') : -1
  if (comma < 0 && /^[a-z]+:/iu.test(data)) return undefined
  try {
    const bytes = Uint8Array.from(atob(data.slice(comma + 1)), (character) => character.charCodeAt(0))
    return new Blob([bytes], { type: mediaType })
  } catch {
    return undefined
  }
}
