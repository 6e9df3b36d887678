// SPDX-License-Identifier: Apache-2.0
// Builds one file: dist/index.html with its script and style inside, and the place where `lockstep report` puts the data.
import { createHash } from 'node:crypto';
import { defineConfig, type Plugin } from 'vite';

const PLACE = '<script type="application/json" id="lockstep-data">null</script>';

/** Inlines the one script and the one style sheet, and allows the page to run that script and no other. */
function singleFile(): Plugin {
  return {
    name: 'single-file',
    enforce: 'post',
    generateBundle(_options, bundle) {
      const files = Object.values(bundle);
      const text = (end: string): string => {
        const found = files.filter((file) => file.fileName.endsWith(end));
        const [file] = found;
        if (found.length !== 1 || !file) throw new Error(`${found.length} files end in ${end}, one is expected`);
        const content = file.type === 'chunk' ? file.code : file.source;
        return typeof content === 'string' ? content : new TextDecoder().decode(content);
      };
      const script = text('.js').replace(/<\/(script)/gi, '<\\/$1').replace(/<!--/g, '<\\!--').trim();
      const style = text('.css').trim();
      const hash = createHash('sha256').update(script).digest('base64');
      let page = text('.html')
        .replace(/\s*<script type="module"[^>]*><\/script>/, '')
        .replace(/\s*<link rel="stylesheet"[^>]*>/, () => `\n<style>${style}</style>`)
        .replace('SCRIPT_HASH', () => `sha256-${hash}`);
      page = page.replace('</body>', () => `<script type="module">${script}</script>\n</body>`);
      if (page.split(PLACE).length !== 2) throw new Error(`${PLACE} has to be in the page exactly once`);
      if (/\b(?:src|href)="(?!data:)/.test(page.replace(script, ''))) throw new Error('the page refers to another file');
      for (const file of files) delete bundle[file.fileName];
      this.emitFile({ type: 'asset', fileName: 'index.html', source: page });
    },
  };
}

export default defineConfig({
  plugins: [singleFile()],
  base: './',
  build: {
    target: 'es2020',
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 1 << 20,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2000,
  },
});
