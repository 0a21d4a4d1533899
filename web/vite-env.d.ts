/// <reference types="vite/client" />

/** Custom properties in `style`. */
declare namespace React {
  interface CSSProperties {
    [name: `--${string}`]: string | number | undefined
  }
}
