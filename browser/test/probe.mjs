/** Tries to reach what belongs to the page around. Runs in the sandbox, and as a control in a plain frame. */
export const probe = async () => {
	const attempt = async ( task ) => {
		try {
			return String( await task() );
		} catch ( thrown ) {
			return `blocked: ${ thrown.name }`;
		}
	};
	const inner = document.createElement( 'iframe' );
	document.body.append( inner );
	return {
		dom: await attempt( () => window.top.document.body.dataset.secret ),
		cookie: await attempt( () => inner.contentDocument.cookie ),
		storage: await attempt( () => inner.contentWindow.localStorage.getItem( 'parent_secret' ) ),
		database: await attempt( () => inner.contentWindow.indexedDB.databases().then( () => 'readable' ) ),
		cache: await attempt( () => inner.contentWindow.caches.keys().then( ( names ) => `readable: ${ names.join() }` ) ),
		fetch: await attempt( () => fetch( new URL( '/test/page.html', document.baseURI ) ).then( ( answer ) => answer.status ) ),
	};
};

/** What a plain frame of the site reaches. */
export const everything = { dom: 'parent-dom', cookie: 'parent_secret=parent-cookie', storage: 'parent-storage', database: 'readable', cache: 'readable: wp-codebox-browser-v1', fetch: '200' };
