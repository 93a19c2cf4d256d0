/**
 * Frames within opaque documents. Their navigation reaches no service worker, because a document above them has no origin,
 * so they would ask the real server. The policy of the documents forbids that. Instead, this script sends the request to its
 * parent document, which passes it on up to the remote page, and shows the sandbox's answer as `srcdoc`.
 *
 * The function runs in documents of the sandbox: it uses nothing from outside, and everything that it asks for is what its
 * document could open by itself.
 */

/** Request of a frame. */
export interface FrameRequest {
	url: string;
	method: string;
	body?: ArrayBuffer;
	contentType?: string;
}

/** Message of a document to the page around it, with a port for the answer: the text of a document. */
export interface FrameLoad {
	type: 'wp-codebox-frame-load';
	request: FrameRequest;
}

/** Runs in each document. */
export function serveFrames(): void {
	if ( window.parent === window ) {
		return;
	}
	const nested = 'about:' === location.protocol;
	const newest = new WeakMap< Element, object >();
	const ours = new WeakSet< Element >();
	const restored = new WeakSet< Element >();

	const load = ( request: FrameRequest ): Promise< string > => new Promise( ( resolve ) => {
		const channel = new MessageChannel();
		channel.port1.onmessage = ( event ) => {
			channel.port1.close();
			resolve( String( event.data ) );
		};
		window.parent.postMessage( { type: 'wp-codebox-frame-load', request }, '*', [ channel.port2 ] );
	} );
	const fill = async ( frame: HTMLIFrameElement, request: FrameRequest ): Promise< void > => {
		const turn = {};
		newest.set( frame, turn );
		const place = frame.parentElement;
		const text = await load( request );
		if ( newest.get( frame ) !== turn ) {
			return;
		}
		if ( new URL( request.url ).searchParams.has( 'customize_messenger_channel' ) ) {
			// The Customizer removes a preview frame that sends it no messages, so the explanation is shown in a frame of its own.
			const own = document.createElement( 'iframe' );
			own.style.cssText = 'position:absolute;inset:0;width:100%;height:100%;border:0;z-index:10';
			own.srcdoc = text;
			own.dataset.codebox = 'sentence';
			place?.querySelector( 'iframe[data-codebox]' )?.remove();
			place?.append( own );
			return;
		}
		frame.srcdoc = text;
		const address = frame.dataset.codeboxSrc;
		if ( undefined !== address ) {
			// Beside `srcdoc`, `src` loads nothing; it is set for scripts that read it.
			delete frame.dataset.codeboxSrc;
			restored.add( frame );
			frame.setAttribute( 'src', address );
		}
	};
	/** Handles a frame that is new, or whose `src` was set. Frames with a `srcdoc` from the site need no help. */
	const look = ( frame: HTMLIFrameElement ): void => {
		const address = frame.dataset.codeboxSrc ?? frame.getAttribute( 'src' );
		if ( restored.delete( frame ) || null === address || ( frame.hasAttribute( 'srcdoc' ) && ! ours.has( frame ) ) ) {
			return;
		}
		let url: URL;
		try {
			url = new URL( address, document.baseURI );
		} catch {
			return;
		}
		if ( /^https?:$/.test( url.protocol ) ) {
			ours.add( frame );
			void fill( frame, { url: url.href, method: 'GET' } );
		}
	};
	new MutationObserver( ( records ) => {
		const found = new Set< HTMLIFrameElement >();
		for ( const record of records ) {
			for ( const one of 'attributes' === record.type ? [ record.target ] : record.addedNodes ) {
				if ( one instanceof HTMLIFrameElement ) {
					found.add( one );
				} else if ( 'childList' === record.type && one instanceof Element ) {
					one.querySelectorAll( 'iframe' ).forEach( ( frame ) => found.add( frame ) );
				}
			}
		}
		found.forEach( look );
	} ).observe( document, { subtree: true, childList: true, attributes: true, attributeFilter: [ 'src' ] } );

	const frames = (): HTMLIFrameElement[] => [ ...document.querySelectorAll( 'iframe' ) ];
	window.addEventListener( 'message', ( event ) => {
		const type = ( event.data as { type?: unknown } | null )?.type;
		if ( 'wp-codebox-frame-load' !== type && 'wp-codebox-frame-open' !== type ) {
			return;
		}
		event.stopImmediatePropagation();
		const frame = frames().find( ( one ) => one.contentWindow === event.source );
		if ( undefined === frame ) {
			return;
		}
		if ( 'wp-codebox-frame-open' === type ) {
			void fill( frame, ( event.data as { request: FrameRequest } ).request );
		} else if ( undefined !== event.ports[ 0 ] ) {
			window.parent.postMessage( event.data, '*', [ event.ports[ 0 ] ] );
		}
	} );

	/** Opens a request in the target of a link or form; returns false when the browser can open it itself. */
	const open = ( target: string, request: FrameRequest ): boolean => {
		const frame = '' === target ? undefined : frames().find( ( one ) => one.name === target );
		if ( undefined !== frame ) {
			void fill( frame, request );
			return true;
		}
		if ( nested && ( '' === target || '_self' === target ) ) {
			window.parent.postMessage( { type: 'wp-codebox-frame-open', request }, '*' );
			return true;
		}
		return false;
	};
	const targetOf = ( own: string ): string => own || document.querySelector< HTMLBaseElement >( 'base[target]' )?.target || '';
	const submit = ( form: HTMLFormElement, submitter: HTMLElement | null ): boolean => {
		const target = targetOf( submitter?.getAttribute( 'formtarget' ) ?? form.target );
		if ( ! nested && ! frames().some( ( one ) => one.name === target && '' !== target ) ) {
			return false;
		}
		// Read attributes: a field named `action` or `method` would hide the property of the form.
		const url = new URL( submitter?.getAttribute( 'formaction' ) ?? form.getAttribute( 'action' ) ?? '', document.baseURI );
		const fields = new FormData( form, submitter );
		const text = new URLSearchParams( [ ...fields ].map( ( [ name, value ] ) => [ name, 'string' === typeof value ? value : value.name ] ) );
		if ( 'post' !== ( submitter?.getAttribute( 'formmethod' ) ?? form.getAttribute( 'method' ) ?? '' ).toLowerCase() ) {
			url.search = text.toString();
			return open( target, { url: url.href, method: 'GET' } );
		}
		const packed = new Response( 'multipart/form-data' === form.getAttribute( 'enctype' ) ? fields : text );
		const contentType = packed.headers.get( 'content-type' ) ?? '';
		void packed.arrayBuffer().then( ( body ) => open( target, { url: url.href, method: 'POST', body, contentType } ) );
		return true;
	};
	window.addEventListener( 'click', ( event ) => {
		const link = ( event.target as Element | null )?.closest?.( 'a[href], area[href]' ) as HTMLAnchorElement | null;
		if ( event.defaultPrevented || 0 !== event.button || event.ctrlKey || event.metaKey || event.shiftKey || null === link || link.hasAttribute( 'download' ) || ! /^https?:$/.test( link.protocol ) ) {
			return;
		}
		const [ path, fragment ] = link.href.split( '#' );
		if ( nested && undefined !== fragment && path === document.baseURI.split( '#' )[ 0 ] ) {
			event.preventDefault();
			document.getElementById( decodeURIComponent( fragment ) )?.scrollIntoView();
		} else if ( open( targetOf( link.target ), { url: link.href, method: 'GET' } ) ) {
			event.preventDefault();
		}
	} );
	window.addEventListener( 'submit', ( event ) => {
		if ( ! event.defaultPrevented && submit( event.target as HTMLFormElement, event.submitter ) ) {
			event.preventDefault();
		}
	} );
	const plain = HTMLFormElement.prototype.submit;
	HTMLFormElement.prototype.submit = function () {
		if ( ! submit( this, null ) ) {
			plain.call( this );
		}
	};
}
