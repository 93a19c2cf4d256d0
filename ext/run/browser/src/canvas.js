// Reports the parts of the block editor's canvas. Runs in an isolated world; `locate` is the function of locate.js.
((locate, call) => {
	const shows = (one) => {
		const box = one.getBoundingClientRect();
		return box.width > 0 && box.height > 0 && one.checkVisibility({ visibilityProperty: true, opacityProperty: true });
	};
	const boxOf = (one) => {
		const box = one.getBoundingClientRect();
		return { x: box.left, y: box.top, width: box.width, height: box.height };
	};
	const find = (root, selector) => {
		try {
			return { found: locate(root, selector), error: null };
		} catch (error) {
			return { found: [], error: String((error && error.message) || error).slice(0, 300) };
		}
	};
	const counted = (root, selector) => {
		const { found, error } = find(root, selector);
		const row = { selector, count: found.length, visible: found.filter(shows).length };
		return error ? { ...row, error } : row;
	};
	const frame = find(document, call.frame).found[0] || null;
	const root = (frame && frame.contentDocument) || document;
	const layout = find(root, call.layout).found[0] || null;
	const blocks = find(root, call.block);
	return {
		canvas: {
			iframe: {
				...counted(document, call.frame),
				found: frame !== null,
				name: frame ? String(frame.name).slice(0, 100) : null,
				accessible: frame ? frame.contentDocument !== null : null,
				box: frame ? boxOf(frame) : null,
			},
			layout: { ...counted(root, call.layout), found: layout !== null, box: layout ? boxOf(layout) : null },
			bodyClass: root.body ? String(root.body.className).slice(0, 1000) : '',
			styles: root.querySelectorAll('style, link[rel="stylesheet"]').length,
		},
		blocks: {
			...counted(root, call.block),
			rows: blocks.found.slice(0, 200).map((one) => ({
				type: (one.getAttribute('data-type') || '').slice(0, 200),
				clientId: (one.getAttribute('data-block') || '').slice(0, 100),
				visible: shows(one),
				box: boxOf(one),
				text: String(one.textContent || '').replace(/\s+/g, ' ').trim().slice(0, 200),
			})),
		},
		selectorGroups: call.groups.map(([name, selectors]) => {
			const rows = selectors.map((selector) => counted(root, selector));
			return { name, matched: rows.some((row) => row.count > 0), selectors: rows };
		}),
	};
})
