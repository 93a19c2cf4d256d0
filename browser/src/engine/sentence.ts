/** A plain page with one sentence, for every case in which WordPress itself cannot answer. */

/** Escapes text for HTML. */
export function escapeHtml( text: string ): string {
	return text.replace( /[&<>"']/g, ( one ) => `&#${ one.charCodeAt( 0 ) };` );
}

/** The page; `home` is the address of the site's front page. */
export function sentencePage( title: string, text: string, home: string ): string {
	return `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${ escapeHtml( title ) }</title>
<style>body{font:15px/1.6 system-ui,sans-serif;color:#1d2327;background:#f0f0f1;margin:0}main{max-width:34em;margin:12vh auto;background:#fff;border:1px solid #c3c4c7;padding:1.5em 2em;overflow-wrap:anywhere}h1{font-size:1.25em}pre{white-space:pre-wrap}</style>
</head><body><main><h1>${ escapeHtml( title ) }</h1><p>${ escapeHtml( text ) }</p><p><a href="${ escapeHtml( home ) }">Front page of the sandbox</a></p></main></body></html>`;
}
